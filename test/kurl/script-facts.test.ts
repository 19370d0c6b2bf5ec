import * as assert from '../support/assert.ts';
import { execa } from 'execa';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ownPath, PROGRAMS, SHELL_WORDS } from '../../src/kurl/check-addon.ts';
import { scriptFacts, templateFacts } from '../../src/kurl/script-facts.ts';
import { suite } from '../support/suite.ts';

const test = suite('migrate/script-facts');

test('calls, also those that another command makes', () => {
  const { calls } = scriptFacts(`spinner_until 120 a x
try_1m b
cmd_retry 3 maybe c
timeout 10 d; env -i X=1 e; sudo -n f
trap 'g "$x"' EXIT
eval "h $y"
i <<EOF
$(j)
EOF`);
  for (const name of 'abcdefghij'.split('')) assert.ok(calls.has(name), name);
  assert.ok(!calls.has('120') && !calls.has('x'));
});

test('what is asked about before it is called', () => {
  const { tested, calls } = scriptFacts('commandExists a; command -v b; type -t c; declare -F d; [ "$(type e)" ]');
  for (const name of 'abcde'.split('')) assert.ok(tested.has(name), name);
  assert.ok(!calls.has('b') && !calls.has('d'));
});

test('names that commands set', () => {
  const { assigned } = scriptFacts(
    'read -r A B\nmapfile -t C\nprintf -v D x\nfor E in 1; do :; done\nlocal F G=1\neval "H=1"\ngetopts x I',
  );
  for (const name of 'ABCDEFGHI'.split('')) assert.ok(assigned.has(name), name);
});

test('a template is text whose expansions count', () => {
  const { reads, calls } = templateFacts('a: ${A}\nb: "$B" # $(c)\n\\$D\n');
  assert.equal([...reads.keys()], ['A', 'B']);
  assert.equal([...calls.keys()], ['c']);
});

test('paths below the own folder are known through variables that are set once', () => {
  const { paths } = scriptFacts(`demo() {
  local src="$DIR/addons/demo/$DEMO_VERSION" twice=a
  twice=b
  cp -r "$src/a" "$src/b" "$DIR/kustomize/demo/"
  render_yaml_file_2 "\${src}/c" > "$src/d"
  cp "$src"/{k.yaml,l.yaml} "$src/m"{1,2} "$DIR/kustomize/demo/"
  cat $src/*.yaml "$src/$twice" "$src/../e" | kubectl apply -f "$src/f"
  source $src/g.sh
  [ -f "$src/h" ] && bash ./addons/demo/1.0/i.sh
}
other() { cat "$src/j"; }`);
  const found = paths.flatMap(({ parts, role }) => {
    const path = ownPath(parts, 'demo', '1.0');
    return path === undefined ? [] : [`${role} ${path}`];
  });
  assert.equal(found, ['read a', 'read b', 'made d', 'template c', 'read f', 'source g.sh', 'tested h', 'read i.sh']);
});

test('of the library itself: the functions that bash finds, and no call that nothing answers', async () => {
  const folder = join(import.meta.dirname, '../../scripts/lib');
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sh'));
  const facts = [];
  for (const name of names) facts.push(scriptFacts(await readFile(join(folder, name), 'utf8')));
  const functions = new Set(facts.flatMap((one) => [...one.functions]));
  const { stdout } = await execa(
    'bash',
    ['-c', 'for file; do source "$file"; done; compgen -A function', 'bash', ...names],
    {
      cwd: folder,
      stdin: 'ignore',
      extendEnv: false,
      env: { PATH: process.env['PATH'] },
    },
  );
  assert.equal([...functions].toSorted(), stdout.split('\n').toSorted());
  const calls = facts.flatMap((one) => [...one.calls.keys()].filter((name) => !one.tested.has(name)));
  const unanswered = calls.filter((name) => !functions.has(name) && !SHELL_WORDS.has(name) && !PROGRAMS.has(name));
  // A hook, which an add-on has.
  assert.equal(unanswered, ['containerd_install']);
});

test.run();
