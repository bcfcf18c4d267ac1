"""Commands that plan, watch and read runs: plan, status, chains, report, agree, select, audit, relabel, regrade."""
