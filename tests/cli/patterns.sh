# `kernelgen patterns`: importing the lessons of four problems, what is shown of them, and exporting them again.
sample=$ROOT/tests/data/lessons.jsonl
kernelgen patterns
kernelgen patterns favourites
kernelgen patterns import "$sample"
kernelgen patterns
kernelgen patterns favourites --json
kernelgen patterns import "$sample"
kernelgen patterns export out.jsonl
cmp out.jsonl "$sample" && echo same
kernelgen patterns list --json | python3 -c '
import collections, json, sys
patterns = json.load(sys.stdin)
print(len(patterns), dict(collections.Counter(p["state"] for p in patterns)))
best = min(patterns, key=lambda p: p["time_ratio"])
print({key: best[key] for key in ("subject", "family", "parameter", "value", "wins", "problems", "state")})'

for words in 'import' 'import missing.jsonl' 'forget' 'export --json' 'list file' 'import cut.jsonl' 'import changed.jsonl' \
    'import wisdom.jsonl' 'export out.jsonl more' 'favourites file'; do
    head -n 5 "$sample" >cut.jsonl
    sed '3s/"tried": [0-9]*/"tried": 999/' "$sample" >changed.jsonl
    echo '{"format": "kernelgen wisdom", "version": 2, "lines": 0}' >wisdom.jsonl
    echo "---- $words"
    kernelgen patterns $words; echo "exit $?"
done
