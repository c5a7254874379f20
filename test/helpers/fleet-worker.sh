# An agent of the fleet that does what it is told: each line of input is run. Says `ready` when it waits for one.
commit() { echo "$1" >"$1.txt" && git add "$1.txt" && git commit -qm "$1"; }
crash() { kill -9 $$; }
echo "ready $COPPICE_AGENT $COPPICE_ITEM"
while IFS= read -r line; do
  case "$line" in
  'You '* | 'Item '* | 'Patrol: '*) echo "told: $line" ;;
  *) eval "$line" ;;
  esac
  echo "ready after: $line"
done
