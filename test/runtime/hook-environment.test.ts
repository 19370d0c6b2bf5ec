import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { CurlewError } from '../../src/core/errors.ts';
import { lookUpFunctions } from '../../src/runtime/hooks/hook.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { hooks } from '../support/hook-shell.ts';
import { suite } from '../support/suite.ts';

const test = suite('the shell that hooks start in');

test('functions that the caller has exported are none of the hooks', async () => {
  await using box = await hooks(['demo() { type -t grep ls | sort -u >out; }'], {
    env: { 'BASH_FUNC_grep%%': '() { echo not mine; }', 'BASH_FUNC_demo_outro%%': '() { :; }' },
  });
  await box.run('demo');
  assert.is(await readFile(box.at('out'), 'utf8'), 'file\n');
  const found = await lookUpFunctions(box.shell, { report: noReport, signal: never });
  assert.not.ok(found.has('demo_outro'));
});

test('options that one install.sh sets at its top end with it', async () => {
  await using box = await hooks([
    'set -aufCx -o pipefail -o posix\ndemo() { :; }',
    'demo2() { set +o >out; }\nTOP=1\n',
  ]);
  await box.run('demo2');
  const said = await readFile(box.at('out'), 'utf8');
  for (const option of ['allexport', 'nounset', 'noglob', 'noclobber', 'xtrace', 'pipefail', 'posix']) {
    assert.match(said, `set +o ${option}\n`);
  }
});

test('programs that an install.sh has redefined do not change how hooks are run', async () => {
  const programs = ['kubectl', 'mv', 'cat', 'rm', 'sleep', 'command', 'curlew'];
  const builtins = [
    'printf',
    'compgen',
    'read',
    'mapfile',
    'source',
    'echo',
    'declare',
    'local',
    'unset',
    'set',
    'trap',
  ];
  const others = ['shift', 'return', 'exit', 'continue', 'eval', 'shopt', 'exec', 'umask', 'true', 'test', 'export'];
  const functions = [...programs, ...builtins, ...others].map((name) => `function ${name} { GONE=${name}; }`);
  const demo = `demo_pre_init() { KEPT='a b'; LIST=(1 '2 3'); FROM_ENV=changed; }
    demo_post_init() { [ "$KEPT,\${LIST[1]},$FROM_ENV" = 'a b,2 3,changed' ]; declare; [ "$GONE" = declare ]; }
    demo() { [ "$KEPT" = other ]; }`;
  await using box = await hooks([`${functions.join('\n')}\n${demo}\n`], { env: { FROM_ENV: 'x' } });
  await box.run('demo_pre_init');
  await box.run('demo_post_init');
  const where = /demo failed with status 1 at \S*install\.sh:\d+ in demo: \[ "\$KEPT" = other \]/;
  await assert.rejectsWith(box.run('demo', { own: box.shell.installScripts[0] }), 'HOOK_FAILED', where);
});

test('hooks after pre_init find the networks of the cluster, where nothing else has set them', async () => {
  const tells = (name: string): string => `${name}() { echo "${name} $POD_CIDR $SERVICE_CIDR" >>out; }\n`;
  const top = 'CURLEW_API_SERVER_MANIFEST=static/kube-apiserver.yaml\n';
  const network = `${top}demo_pre_init() { POD_CIDR="$DEMO_POD_CIDR"; echo "pre_init $POD_CIDR $SERVICE_CIDR" >>out; }\n`;
  await using box = await hooks([network + tells('demo') + tells('demo_outro'), tells('demo2')], {
    settings: [
      ['POD_CIDR', ''],
      ['SERVICE_CIDR', ''],
      ['DEMO_POD_CIDR', ''],
    ],
  });
  await mkdir(box.at('static'));
  await writeFile(box.at('static/kube-apiserver.yaml'), '    - --service-cluster-ip-range=10.96.0.0/12\n');
  await writeFile(box.at('static/kube-controller-manager.yaml'), '    - --cluster-cidr=10.40.0.0/20\n');
  for (const hook of ['demo_pre_init', 'demo', 'demo2']) await box.run(hook);
  await rm(box.at('static'), { recursive: true });
  await box.run('demo_outro');
  const known = '10.40.0.0/20 10.96.0.0/12';
  assert.is(await readFile(box.at('out'), 'utf8'), `pre_init  \ndemo ${known}\ndemo2 ${known}\ndemo_outro ${known}\n`);
});

test('words that a hook is called with arrive as they are, and none when there are none', async () => {
  await using box = await hooks(['demo() { printf "%s|" "$#" "$@" >out; }']);
  await box.run('demo', { args: ['', 'a b', '$(id) *', 'lb:6443'] });
  assert.is(await readFile(box.at('out'), 'utf8'), '4||a b|$(id) *|lb:6443|');
  await box.run('demo');
  assert.is(await readFile(box.at('out'), 'utf8'), '0|');
});

test('more variables than can be handed on are told as that', async () => {
  await using box = await hooks(['demo() { printf -v BIG "%17000000s" x; }']);
  const error = await assert.rejectsWith(
    box.run('demo'),
    'HOOK_FAILED',
    /^demo: demo left 17\d{6} bytes of variables, more than 16777216/,
  );
  assert.match(error.hint ?? '', 'in a file');
});

test('a hook that is ended just when it starts a program says where it was, every time', async () => {
  for (let time = 0; time < 12; time += 1) {
    await using box = await hooks(['demo() {\n  touch ready\n  sleep 1000\n}\n']);
    const controller = new AbortController();
    // What SIGTERM does not end is left to SIGKILL, which lets nobody say anything.
    const running = box.run('demo', { signal: controller.signal, graceMs: 100_000 });
    await appears(box.at('ready'));
    controller.abort(new CurlewError('CANCELLED', 'cancelled'));
    const where = /^demo: demo was canceled in demo, which begins at \S*install\.sh:1: (?:touch ready|sleep 1000)/;
    await assert.rejectsWith(running, 'CANCELLED', where);
  }
});

test.run();
