/** Scripts as people write them: what import says is missing must be missing. */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { checkRepository, type Migration } from '../../src/kurl/migrate.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('migrate/real-scripts');
const LIBRARY = join(import.meta.dirname, '../../scripts/lib');

async function look(box: Tree): Promise<Migration> {
  const searchPath = process.env['PATH'] ?? '/usr/bin:/bin';
  return checkRepository(box.path, { library: LIBRARY, searchPath, signal: never });
}

function missing({ addons }: Migration): readonly string[] {
  const found = addons.flatMap((addon) => addon.findings).filter(({ grade }) => grade === 'missing');
  return found.map(({ kind, subject }) => `${kind} ${subject}`);
}

test('the add-ons that the tests run against a real API server lack nothing', async () => {
  await using box = await tree();
  await cp(join(import.meta.dirname, '../fixtures/kurl-addons/addons'), box.at('addons'), { recursive: true });
  const migration = await look(box);
  assert.is(migration.addons.length, 7);
  assert.equal(missing(migration), []);
});

test('of what real scripts are full of, only what nothing defines is missing', async () => {
  const script = `function demo() {
    local src="$DIR/addons/demo/1.0" dst="$DIR/kustomize/demo"
    local -a pods=( $(kubectl get pods -o jsonpath='{.items[*].metadata.name}') )
    for pod in "\${pods[@]}"; do log "$pod\${secret:+ with a secret}"; done
    cp -a "$src"/{a.yaml,b.yaml} "$dst/"
    demo_rename_pvc_1-12-2 "$src" || { logFail "not"; return 1; }
    if kubernetes_resource_exists default secret x && \\
       ! [ "$(kubectl get x -o json | jq -r '.data["a b"]')" == "null" ]
    then maybe_unknown_fn; elif (( $(date +%s) > 1 )); then let n+=1; fi
    read -r -d '' TEXT <<-'EOS' || true
	function not_called() { undefined_in_heredoc; }
	EOS
    kubectl exec -i pod -- sh -c "psql_inside_pod -U x"
    [[ "$TEXT" == *"<<EOF"* ]] && y=$(( 1 << 2 ))
    while IFS= read -r line || [[ -n $line ]]; do demo_line "$line"; done < <(kubectl get crds | grep demo)
    declare -A map=([a]=1 [b]="$(demo_in_map)")
    case "$1" in
      (a) demo_a ;;
      b|c) : ;&
      *) demo_other ;;
    esac
    { echo a; demo_grouped; } &> /dev/null &
    ( demo_below ) || true
    printf '%s' "\${line//\\"/\\\\\\"}" "\${TEXT/#a/b}" "\${!TEXT}" "\${y^^}" "\${#pods[@]}"
    DEMO_URL=https://x demo_fetch "$src" 2>/dev/null
    \${DIR}/bin/bcrypt --cost=14 < <(echo x)
}
function demo_rename_pvc_1-12-2() { echo "$1"; }
demo_fetch ()
{
    curl $DEMO_URL > "$2/application.yaml"
}
demo_line() { :; }; demo_in_map() { :; }; demo_a() { :; }; demo_other() { :; }; demo_grouped() { :; }; demo_below() ( : )
`;
  await using box = await tree({ 'addons/demo/1.0/Manifest': '', 'addons/demo/1.0/install.sh': script });
  assert.equal(missing(await look(box)), ['function maybe_unknown_fn']);
});

test.run();
