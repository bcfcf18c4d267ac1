"""Commands that plan, watch and read runs: plan, status, report, agree, select, audit, relabel, regrade."""
