"""`python -m tests.sown_bugs [NAME ...]`: sow each bug into a copy, and print the test that saw it."""

import sys

from tests.sown_bugs.bugs import all_bugs, checkout_copy, complaints_without, watched


def main(names: list[str]) -> int:
    known = {bug.name: bug for bug in all_bugs()}
    if unknown := [name for name in names if name not in known]:
        sys.stderr.write(f"there is no bug {', '.join(unknown)}; there are {', '.join(known)}\n")
        return 2
    bugs = [known[name] for name in names] or list(known.values())
    with checkout_copy() as copy:
        faults = list(filter(None, [complaints_without(bugs, copy)]))
        for bug in bugs:
            found = watched(bug, copy)
            print(f"{bug.name:<30}{bug.package:<12}{found.seconds:5.1f} s  {found.test or 'NOT SEEN'}", flush=True)
            faults += filter(None, [found.fault])
    print(*(faults or [f"{len(bugs):,} bugs are seen"]), sep="\n\n")
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
