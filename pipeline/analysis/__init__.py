"""Commands that plan, watch and read runs: plan, status, chains, report, agree, calibrate, select, audit, relabel, regrade."""
