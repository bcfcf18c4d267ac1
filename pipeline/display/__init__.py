"""What commands show: figures, tables and charts in sections, on a terminal and on a page that is one file."""
