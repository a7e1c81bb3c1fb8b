"""`evenrank reproduce trec` from an empty folder, as a user runs it: whole time, and each method's share.

The paper says 585 CPU hours for these experiments (its Section on computational costs: 1,170 runs of each of four
algorithms, about 1, 1, 11 and 17 CPU minutes a run; on 652 queries, where the data at hand has 547).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import common
from evenrank.paper.printed import CPU_HOURS

PAPER_MINUTES = {"amortized": 1, "fastar": 1, "deltr": 11, "per_query": 17}
PAPER_RUNS = 1170


def main() -> None:
    made = common.parser(__doc__)
    made.add_argument("--data", type=Path, default=Path(__file__).parents[1] / ".." / "shared/data/trec_fair_2019")
    args = made.parse_args()
    common.start("The paper's TREC experiments", [], threads=args.threads)
    if not args.data.is_dir():
        sys.exit(f"{args.data}: there is no such folder. Name the data with --data.")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "evenrank", "reproduce", "trec", "--data", str(args.data), "--json"]
        command += ["--out", str(Path(folder) / "out"), *(["--quick"] if args.quick else [])]
        took, done = common.timed(lambda: subprocess.run(command, check=True, capture_output=True, text=True))
    found = json.loads(done.stdout)
    lines = []
    for method, seconds in found["method_seconds"].items():
        paper = PAPER_RUNS * PAPER_MINUTES[method] / 60 if method in PAPER_MINUTES else None
        lines.append([method, common.seconds(seconds), "" if paper is None else f"{paper:.1f} CPU hours"])
    lines.append(["all, training and measuring", common.seconds(sum(found["method_seconds"].values())), ""])
    common.table(["method (seconds of its processes)", "here", "paper"], lines)
    common.note(f"Whole command, with {len(found['files'])} tables and figures: {took:.1f} s.")
    common.note(f"The paper's whole: {CPU_HOURS['trec']} CPU hours.")


if __name__ == "__main__":
    main()
