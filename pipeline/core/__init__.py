"""What all packages share: records, ids, errors, Arrow schemas and tables, progress, and the machinery of plug-ins."""
