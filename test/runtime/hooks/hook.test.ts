import { readFile, stat, writeFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { execa } from 'execa';
import { digestOf } from '../../../src/core/digest.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import { findCarried, lookUpFunctions } from '../../../src/runtime/hooks/hook.ts';
import { hookFailure } from '../../../src/runtime/hooks/hook-failure.ts';
import { membersOf } from '../../../src/platform/process/process-tree.ts';
import { appears } from '../../support/appears.ts';
import * as assert from '../../support/assert.ts';
import { never, noReport } from '../../support/context.ts';
import { hooks, type Hooks } from '../../support/hook-shell.ts';
import { suite } from '../../support/suite.ts';

// own process: measures memory
const test = suite('hook processes');

function alive(box: Hooks, name: string): number {
  const { inSession, outside } = membersOf({ session: -1, marker: `CURLEW_HOOK=${box.shell.run}/${name}` });
  return inSession.length + outside.length;
}

test('what is cancelled between two lines of a hook names no line of the program that runs hooks', async () => {
  await using box = await hooks(['demo() { :; }']);
  const at = { depth: 0, status: 143, function: '', line: 0, command: 'CURLEW_TEXT="$(builtin compgen -A function)"' };
  const place = { ...at, file: box.at('scripts/hook-runner.sh') };
  const { place: node } = box.shell;
  const failed = { addon: 'demo', function: 'demo', node, log: box.at('demo.log'), exit: 'cancelled' as const };
  assert.is((await hookFailure({ ...failed, notes: { place } })).message, 'demo: demo was canceled');
});

test('variables that a run left are found by the digest in its journal, also without the mark of their end', async () => {
  await using box = await hooks(['demo() { :; }']);
  const text = 'builtin unset -v FOUND\ndeclare -- FOUND="found"\n';
  await writeFile(box.shell.carried, text);
  assert.is(await findCarried(box.shell, digestOf(text)), box.shell.carried);
  assert.is(await findCarried(box.shell, digestOf(text.slice(0, -9))), undefined);
});

test('a hook finds the folder, the environment and the settings it may expect', async () => {
  await using box = await hooks(
    [
      `demo() { { pwd; echo "$DIR"; umask; echo "$DEMO_TEXT"; env | grep -c DEMO_TEXT || true; echo "$MINE"
       echo "$CURLEW_RUN $CURLEW_ATTEMPT"; case ":$PATH:" in *:/usr/local/bin:*) echo path;; esac; } >out; }`,
    ],
    { settings: [['DEMO_TEXT', `a 'b' "c" $HOME \`id\` \\`]], env: { DEMO_TEXT: 'from outside', MINE: 'kept' } },
  );
  await box.run('demo', { attempt: 2 });
  assert.equal((await readFile(box.at('out'), 'utf8')).split('\n'), [
    box.path,
    '.',
    '0022',
    `a 'b' "c" $HOME \`id\` \\`,
    '0',
    'kept',
    `${box.shell.run} 2`,
    'path',
    '',
  ]);
});

test('variables of all kinds are carried to later hooks, with their attributes', async () => {
  await using box = await hooks([
    `demo_pre_init() { A=$'two\\nlines \\'"$x\`\\\\'; LIST=(a 'b c' ''); declare -gA MAP=([k]='v w' ['x y']=z)
       export EXPORTED=yes; declare -gi NUMBER=4; EMPTY=; declare -g NOTHING; declare -gn REF=A; }
     demo() { [ "$A" = $'two\\nlines \\'"$x\`\\\\' ]; [ "\${#LIST[@]}" = 3 ]; [ "\${LIST[1]}" = 'b c' ]
       [ "\${MAP[x y]}" = z ]; [ "$(env | grep EXPORTED)" = EXPORTED=yes ]; NUMBER=NUMBER+1; [ "$NUMBER" = 5 ]
       [ "\${EMPTY-unset}" = '' ]; [ "$REF" = "$A" ]; }
     demo_post_init() { [ "$NUMBER" = 5 ]; }`,
  ]);
  await box.run('demo_pre_init');
  await box.run('demo');
  await box.run('demo_post_init');
  assert.is((await stat(box.shell.carried)).mode & 0o777, 0o600);
});

test('a variable that a hook unset is gone in later ones', async () => {
  await using box = await hooks(
    ['TOP=1\ndemo_pre_init() { unset TOP FROM_ENV; }\ndemo_post_init() { [ -z "${TOP+set}${FROM_ENV+set}" ]; }'],
    { env: { FROM_ENV: 'x' } },
  );
  await box.run('demo_pre_init');
  await box.run('demo_post_init');
});

test('readonly variables, functions, options, traps, the folder and the umask are not carried', async () => {
  await using box = await hooks([
    `demo_pre_init() { readonly FIXED=1; helper() { :; }; set -u; shopt -s nullglob; trap 'echo bye' EXIT; cd /; umask 077; }
     demo_post_init() { [ -z "\${FIXED+set}" ]; FIXED=2; ! declare -F helper; [[ $- != *u* ]]; ! shopt -q nullglob
       [ -z "$(trap -p EXIT)" ]; [ "$PWD" != / ]; [ "$(umask)" = 0022 ]; }`,
  ]);
  await box.run('demo_pre_init');
  await box.run('demo_post_init');
});

test('what install.sh sets at its top is set again before install, and only there', async () => {
  await using box = await hooks([
    'STATE=fresh\ndemo_pre_init() { STATE=changed; }\ndemo_join() { [ $STATE = changed ]; }\ndemo() { [ $STATE = fresh ]; }',
  ]);
  await box.run('demo_pre_init');
  await box.run('demo_join');
  await box.run('demo', { own: box.shell.installScripts[0] });
});

test('an install.sh reads settings at its top', async () => {
  await using box = await hooks(['VERSION="v$DEMO_VERSION"\ndemo() { [ "$VERSION" = v1.0 ]; }'], {
    settings: [['DEMO_VERSION', '1.0']],
  });
  await box.run('demo');
});

test('add-ons see the functions of each other', async () => {
  await using box = await hooks(['demo() { commandExists other_helper; other_helper; }', 'other_helper() { true; }']);
  await box.run('demo');
});

test('a command that fails deep in functions is named with its function, file and line', async () => {
  await using box = await hooks([
    `demo() { middle; }\nmiddle() {\n  deepest one\n}\ndeepest() {\n  echo "about to"\n  grep -q x /dev/null\n}\n`,
  ]);
  const error = await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', /^demo: demo failed with status 1 at /);
  assert.match(error.message, `${box.shell.installScripts[0]}:7 in deepest: grep -q x /dev/null`);
  assert.match(error.message, 'about to');
  assert.match(error.hint ?? '', box.at('runs/r1/demo.log'));
});

test('a hook that returns a status is named with the place of its return', async () => {
  await using box = await hooks([
    `demo() {\n  . ./helpers.sh\n  if true; then\n    return 3\n  fi\n  :\n}
demo_join() {\n  demo ||\n    return\n  :\n}\ndemo_post_init() {\n  :\n  false && true\n}\n`,
  ]);
  await writeFile(box.at('helpers.sh'), ':\n:\n');
  await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', /status 3 at \S+install\.sh:4 in demo: return 3/);
  await assert.rejectsWith(box.run('demo_join'), 'HOOK_FAILED', /status 3 at \S+install\.sh:10 in demo_join: return/);
  await assert.rejectsWith(box.run('demo_post_init'), 'HOOK_FAILED', /status 1 at \S+:13 in demo_post_init: false/);
});

test('a hook with its own RETURN trap that returns a status is named with the place of its definition', async () => {
  await using box = await hooks([`\n\ndemo() {\n  trap 'echo bye' RETURN\n  return 3\n}\n`]);
  await assert.rejectsWith(
    box.run('demo'),
    'HOOK_FAILED',
    /status 3 in demo, which begins at \S+install\.sh:3: return 3/,
  );
});

test('a hook that was killed is said to be, with and without a sandbox', async () => {
  await using box = await hooks(['demo() { kill -9 $$; }']);
  await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', /^demo: demo was killed by SIGKILL \(signal 9\)$/m);
  const { place: node } = box.shell;
  const failed = { addon: 'demo', function: 'demo', node, log: box.at('demo.log'), notes: {}, exit: 137 };
  assert.is((await hookFailure(failed)).message, 'demo: demo was killed by SIGKILL (signal 9)');
});

test('a variable that ends the shell is named with its message and place', async () => {
  await using box = await hooks(['demo() {\n  echo one\n  echo "${DEMO_ZONE:?set it to a zone}"\n}']);
  await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', /install\.sh:3: DEMO_ZONE: set it to a zone$/m);
  await using strict = await hooks(['set -u\ndemo() {\n  echo "$NOT_SET"\n}']);
  await assert.rejectsWith(strict.run('demo'), 'HOOK_FAILED', /at \S+install\.sh:3: NOT_SET: unbound variable$/m);
});

for (const [title, expansion, message] of [
  [
    'arithmetic',
    '$((08 + 1))',
    String.raw`08 \+ 1: value too great for base \(error token is "08 ?"\)|08: value too great for base \(error token is "08"\)`,
  ],
  ['a substitution', '${x!y}', String.raw`\$\{x!y\}: bad substitution`],
] as const) {
  test(`an error in ${title} fails the hook that it ends, and is named with its place`, async () => {
    await using box = await hooks([`demo() {\n  echo one\n  local one="${expansion}"\n  touch after\n}`]);
    await assert.rejectsWith(
      box.run('demo'),
      'HOOK_FAILED',
      new RegExp(`status 1 at \\S+install\\.sh:3: (?:${message})$`, 'm'),
    );
    assert.is(await stat(box.at('after')).catch(() => 'absent'), 'absent');
  });
}

test('an error in an expansion at the top of install.sh fails all that reads it', async () => {
  const failure = /while \S+install\.sh was read with status 1 at \S+install\.sh:2: 1\/0: division by 0/;
  await using box = await hooks(['demo() { :; }\nHALF=$((1/0))\n']);
  await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', failure);
  await using again = await hooks(['demo_pre_init() { PARTS=0; }\nHALF=$((1/${PARTS-1})); demo() { :; }\n']);
  await again.run('demo_pre_init');
  await assert.rejectsWith(again.run('demo', { own: again.shell.installScripts[0] }), 'HOOK_FAILED', failure);
});

test('what ended a hook without a place is not claimed', async () => {
  await using box = await hooks(['demo() { exec bash -c "exit 4"; }']);
  await assert.rejectsWith(
    box.run('demo'),
    'HOOK_FAILED',
    /demo ended with status 4 at an unknown line, as after exec/,
  );
});

test('failing conditions, and failures that are handled, do not end a hook', async () => {
  await using box = await hooks([
    'demo() { if false; then :; fi; false || true; local x=$(false); ! true; echo "$(false)"; }',
  ]);
  await box.run('demo');
});

test('neither an unset variable nor a failing command in a pipe ends a hook whose install.sh sets no options', async () => {
  await using box = await hooks(['demo() { echo "$NOT_SET"; false | true; }', 'set -u -o pipefail']);
  await box.run('demo');
});

test('options that install.sh sets at its top hold for its own hooks, also where it is sourced again', async () => {
  const script = 'set -euo pipefail\nshopt -s nullglob\n';
  await using box = await hooks([
    `${script}demo() { demo_join; false | true; touch after; }\ndemo_join() { shopt -q nullglob; }
     demo_post_init() { echo "$NOT_SET"; }`,
    'other() { false | true; ! shopt -q nullglob; echo "$NOT_SET"; }',
  ]);
  await box.run('demo_join');
  await box.run('other');
  for (const own of [undefined, box.shell.installScripts[0]])
    await assert.rejectsWith(box.run('demo', { own }), 'HOOK_FAILED', /status 1 at \S+:3 in demo: true/);
  await assert.rejectsWith(box.run('demo_post_init'), 'HOOK_FAILED', /NOT_SET: unbound variable/);
  assert.is(await stat(box.at('after')).catch(() => 'absent'), 'absent');
});

test('errexit holds although install.sh ends with set +e', async () => {
  await using box = await hooks(['demo() { false; touch after; }\nset +e\ntrap - ERR']);
  await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', /in demo: false/);
  assert.is(await stat(box.at('after')).catch(() => 'absent'), 'absent');
});

test('a hook that calls exit 0 has failed', async () => {
  await using box = await hooks(['demo() { exit 0; }']);
  await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', /called exit before its end/);
});

test('a hook that exits with a status has failed with it', async () => {
  await using box = await hooks(['demo() { exit 7; }']);
  await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', /status 7/);
});

test('bail is told with its text and place', async () => {
  await using box = await hooks(['demo() {\n  bail "no disk for 100%% of it"\n}']);
  const error = await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', /gave up at .*install\.sh:2 in demo: no disk/);
  assert.match(error.message, 'no disk for 100% of it');
});

test('a syntax error in install.sh is named with file and line', async () => {
  await using box = await hooks(['demo() {\n  if true; then\n}\n']);
  await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', /install\.sh:3: syntax error/);
});

test('a command that fails at the top of install.sh is named', async () => {
  await using box = await hooks(['demo() { :; }\nfalse\n']);
  await assert.rejectsWith(
    box.run('demo'),
    'HOOK_FAILED',
    /while .*install\.sh was read with status 1 at .*install\.sh:2: false/,
  );
});

test('a missing function is named', async () => {
  await using box = await hooks(['demo() { :; }']);
  await assert.rejectsWith(box.run('demo_join'), 'HOOK_FAILED', /demo_join is not defined/);
});

test('functions are looked up without running anything', async () => {
  await using box = await hooks(['demo() { touch ran; }\ncert-manager_pre_init() { :; }']);
  const found = await lookUpFunctions(box.shell, { report: noReport, signal: never });
  assert.ok(found.has('demo') && found.has('cert-manager_pre_init') && found.has('spinner_until'));
  assert.not(found.has('demo_join'));
  assert.is(await stat(box.at('ran')).catch(() => 'absent'), 'absent');
});

test('a background process left in the session is ended and named', async () => {
  // Until it is sleep, it has the name of the shell that it came from.
  await using box = await hooks(['demo() { sleep 1000 & until [ "$(</proc/$!/comm)" = sleep ]; do :; done; }']);
  const { ended, daemons } = await box.run('demo');
  assert.equal([ended, daemons], [['sleep'], []]);
  assert.is(alive(box, 'demo'), 0);
});

test('a daemon that left the session lives on and is named', async () => {
  await using box = await hooks([
    // When it is sleep, it has left the session.
    'demo() { setsid sleep 1000 & echo $! >pid; until [ "$(</proc/$!/comm)" = sleep ]; do :; done; }',
  ]);
  const { ended, daemons } = await box.run('demo');
  assert.equal([ended, daemons], [[], ['sleep']]);
  process.kill(Number(await readFile(box.at('pid'), 'utf8')), 'SIGKILL');
});

test('an abort ends the whole tree, also what left the session and what ignores SIGTERM', async () => {
  await using box = await hooks([
    `demo() { trap '' TERM; setsid bash -c 'trap "" TERM; touch left; while :; do sleep 1; done' & (sleep 1000; echo) &
       until [ -e left ]; do sleep 0.01; done; touch ready; while :; do sleep 1; done; }`,
  ]);
  const controller = new AbortController();
  const running = box.run('demo', { signal: controller.signal, graceMs: 100 });
  await appears(box.at('ready'));
  assert.ok(alive(box, 'demo') > 2);
  controller.abort(new CurlewError('CANCELLED', 'cancelled'));
  await assert.rejectsWith(running, 'CANCELLED');
  assert.is(alive(box, 'demo'), 0);
});

test('an abort before the start runs nothing', async () => {
  await using box = await hooks(['demo() { touch ran; }']);
  const signal = AbortSignal.abort(new CurlewError('CANCELLED', 'cancelled'));
  await assert.rejectsWith(box.run('demo', { signal }), 'CANCELLED');
  assert.is(await stat(box.at('ran')).catch(() => 'absent'), 'absent');
});

test('a hook with a limit is ended by it', async () => {
  await using box = await hooks(['demo() { while :; do sleep 1; done; }']);
  await assert.rejectsWith(box.run('demo', { limitMs: 50, graceMs: 100 }), 'HOOK_FAILED', /longer than its limit/);
  assert.is(alive(box, 'demo'), 0);
});

test('a flood of output is whole in the log and bounded in memory and in the message', async () => {
  await using box = await hooks(['demo() { head -c 52428800 /dev/zero | tr "\\0" x; echo; echo the end; return 3; }']);
  const before = process.memoryUsage.rss();
  const error = await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', /the end/);
  assert.ok(error.message.length < 20_000);
  assert.ok(process.memoryUsage.rss() - before < 40 << 20);
  const log = await stat(box.at('runs/r1/demo.log'));
  assert.ok(log.size > 50 << 20);
  assert.is(log.mode & 0o777, 0o600);
});

test('control sequences stay in the log and do not reach the message', async () => {
  await using box = await hooks([
    String.raw`demo() { printf '\033[2J\033]0;title\007 [|]  \b\b\rshown \033[31mred\033[0m\n'; return 1; }`,
  ]);
  const error = await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', /shown red/);
  assert.not.match(error.message, /[\u0000-\u0009\u000b-\u001f]/);
  assert.not.match(error.message, 'title');
  assert.match(await readFile(box.at('runs/r1/demo.log'), 'utf8'), '\u001b[2J');
});

test('steps arrive while the hook runs, with what is special in them intact', async () => {
  await using box = await hooks([
    String.raw`demo() { logStep 'one\ttwo'; log 'back\slash'; logWarn care; until [ -e go ]; do sleep 0.01; done; }`,
  ]);
  const running = box.run('demo');
  while (box.notes().length < 3) await wait(5);
  assert.equal(box.notes(), ['demo: one\ttwo', 'demo: back\\slash', 'demo: care']);
  await writeFile(box.at('go'), '');
  await running;
});

test('a silent hook gives a sign of life, and names what it waits for, with arguments that show no secret', async () => {
  for (const [command, shown] of [
    ['kubectl delete -k web', /no output for \d+ s; it waits for .*kubectl delete -k web$/],
    ['kubectl create secret generic x --from-literal=a=hush', /no output for \d+ s; it waits for bash$/],
  ] as const) {
    await using box = await hooks([`demo() { bash ./${command}; }`]);
    // Made before the hook runs: a sign of life may come while bash still starts.
    await execa('mkfifo', [box.at('go')]);
    await writeFile(box.at('kubectl'), 'read -r _ <go\n');
    const running = box.run('demo', { heartbeatMs: 20 });
    while (!box.notes().some((text) => shown.test(text))) await wait(5);
    await writeFile(box.at('go'), 'x\n');
    await running;
    assert.not.match(box.notes().join('\n'), 'hush');
  }
});

test('a hook has no terminal and an empty input, and may use descriptor 3', async () => {
  await using box = await hooks([
    'demo() { [ -z "$(cat)" ]; ! prompts_can_prompt; confirmY 3>&1; exec 3>mine; echo x >&3; logStep still; }',
  ]);
  await box.run('demo');
  assert.is(await readFile(box.at('mine'), 'utf8'), 'x\n');
  assert.ok(box.notes().includes('demo: still'));
});

test('garbage on the control descriptor does no harm', async () => {
  await using box = await hooks([
    'demo() { printf "error\\nlog\\tnone\\tx\\n\\377\\n" >&"$CURLEW_CONTROL"; head -c 1000000 /dev/zero >&"$CURLEW_CONTROL"; }',
  ]);
  await box.run('demo');
});

test('what would change bash itself is kept away from a hook', async () => {
  await using box = await hooks(['demo() { [[ $- != *u* ]]; ! shopt -qo posix; [ ! -e evil ]; }'], {
    env: { BASH_ENV: 'evil.sh', SHELLOPTS: 'nounset:xtrace', POSIXLY_CORRECT: '1' },
  });
  await box.run('demo');
});

test.run();
