import { chmod, readFile, stat } from 'node:fs/promises';
import { configMapClient } from '../../../src/runtime/cluster/config-map.ts';
import { callApi, findKubectl, refusalHint, type ApiAnswer } from '../../../src/runtime/cluster/kubectl.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Files, type Tree } from '../../support/tree.ts';

const test = suite('runtime/cluster/kubectl');
const GET = { verb: 'get', path: '/api/v1/namespaces/x' } as const;

async function boxWith(kubectl: string, files: Files = {}): Promise<Tree> {
  return tree({ 'path/kubectl': `#!/bin/bash\n${kubectl}\n`, conf: '', ...files });
}

function envOf(box: Tree): Readonly<Record<string, string>> {
  return { PATH: `${box.at('path')}:/usr/bin:/bin`, KUBECONFIG: box.at('conf') };
}

async function ask(box: Tree, signal: AbortSignal, deadlineMs = 20_000): Promise<ApiAnswer> {
  const found = await findKubectl({ env: envOf(box), directory: box.at('node') });
  if (found === undefined) throw new Error('no kubectl');
  return callApi({ ...found, deadlineMs }, GET, { signal });
}

for (const [title, said, problem] of [
  ['what is not there', 'Error from server (NotFound): namespaces "x" not found', 'not found'],
  ['what is there already', 'Error from server (AlreadyExists): x', 'taken'],
  ['a change by somebody else', 'Error from server (Conflict): x', 'conflict'],
  ['a right that is missing', 'Error from server (Forbidden): x', 'refused'],
  ['a token that is not known', 'error: You must be logged in to the server (Unauthorized)', 'refused'],
  ['an authority that is not known', 'Unable to connect to the server: tls: x509: unknown authority', 'refused'],
  ['a port that is closed', 'The connection to the server h:1 was refused - did you specify', 'unreachable'],
  ['a name that is not known', 'Unable to connect to the server: dial tcp: lookup h: no such host', 'unreachable'],
  ['a connection that breaks', 'Unable to connect to the server: unexpected EOF', 'unreachable'],
  ['a server that starts', 'Error from server (ServiceUnavailable): apiserver not ready', 'unreachable'],
  ['a config that is none', 'error: error loading config file "x": yaml: line 1', 'failed'],
] as const) {
  test(`${title} is told apart`, async ({ signal }) => {
    await using box = await boxWith(`printf '%s\\n' ${JSON.stringify(said.replaceAll('"', '\\"'))} >&2; exit 1`);
    const answer = await ask(box, signal);
    assert.is(answer.kind === 'problem' ? answer.problem : '', problem);
  });
}

test('a kubectl that hangs is ended, and its children with the pipe they hold do not matter', async ({ signal }) => {
  await using box = await boxWith('exec sleep 1000');
  const answer = await ask(box, signal, 200);
  assert.equal(answer, { kind: 'problem', problem: 'unreachable', said: 'no answer in 0.2 s' });
});

test('output without end, and what is no JSON, are failures', async ({ signal }) => {
  await using flood = await boxWith('exec yes');
  const flooded = await ask(flood, signal);
  assert.is(flooded.kind === 'problem' ? flooded.problem : '', 'failed');
  await using noise = await boxWith('echo hello');
  const answer = await ask(noise, signal);
  assert.is(answer.kind === 'problem' ? answer.said : '', 'the answer is no JSON');
});

test('what it says is cut, loses addresses with secrets, and cannot drive a terminal', async ({ signal }) => {
  const said = `printf '%s\\n' "https://u:secret@h/?token=secret \u001b[31m$(printf 'x%.0s' {1..2000})" >&2; exit 1`;
  await using box = await boxWith(said);
  const answer = await ask(box, signal);
  if (answer.kind !== 'problem') throw new Error('expected a problem');
  assert.ok(answer.said.length <= 501);
  assert.not.match(answer.said, 'secret');
  assert.not.match(answer.said, '\u001b');
});

test('values go through a pipe: no list of processes shows them', async ({ signal }) => {
  const map = '{"kind":"ConfigMap","metadata":{},"data":{}}';
  await using box = await boxWith(
    `echo "$*" >>"$LOG"; case "$*" in *" get "*) echo 'Error from server (NotFound): x' >&2; exit 1;; esac; cat >>"$LOG.in"; echo '${map}'`,
  );
  const found = await findKubectl({ env: { ...envOf(box), LOG: box.at('log') }, directory: box.at('node') });
  if (found === undefined) throw new Error('no kubectl');
  const client = configMapClient(found, { patienceMs: 0, signal });
  await client.change({ namespace: 'kurl', name: 'm' }, () => ({ password: 'topsecret' }));
  const words = await readFile(box.at('log'), 'utf8');
  assert.not.match(words, 'topsecret');
  assert.match(words, 'create --raw /api/v1/namespaces/kurl/configmaps -f -');
  assert.match(await readFile(box.at('log.in'), 'utf8'), 'topsecret');
});

test('without a kubeconfig or a kubectl there is nothing to ask', async () => {
  await using box = await boxWith('exit 0');
  assert.is(await findKubectl({ env: { ...envOf(box), KUBECONFIG: box.at('none') }, directory: box.path }), undefined);
  assert.is(await findKubectl({ env: { ...envOf(box), PATH: '/nowhere' }, directory: box.path }), undefined);
  const two = { ...envOf(box), KUBECONFIG: `${box.at('none')}:${box.at('conf')}` };
  assert.is((await findKubectl({ env: two, directory: box.path }))?.env['KUBECONFIG'], two.KUBECONFIG);
});

test('the kubectl of the newest package in the install folder is made executable', async () => {
  await using box = await boxWith('exit 0', {
    'node/packages/kubernetes/1.33.0/assets/kubectl': 'old',
    'node/packages/kubernetes/1.34.0/assets/kubectl': 'new',
  });
  const find = async () => findKubectl({ env: { ...envOf(box), PATH: '/nowhere' }, directory: box.at('node') });
  assert.is((await find())?.command, box.at('node/bin/kubectl'));
  assert.is(await readFile(box.at('node/bin/kubectl'), 'utf8'), 'new');
  assert.is((await stat(box.at('node/bin/kubectl'))).mode & 0o777, 0o755);
  await chmod(box.at('node/packages/kubernetes/1.34.0/assets/kubectl'), 0o755);
  assert.is((await find())?.command, box.at('node/packages/kubernetes/1.34.0/assets/kubectl'));
});

test('a certificate that is refused for its time is a matter of the clock', () => {
  const said = 'x509: certificate has expired or is not yet valid: current time 2016-01-01 is before 2026-01-01';
  assert.match(refusalHint(said), 'set the clock of this machine right');
  assert.match(refusalHint('Unauthorized'), 'KUBECONFIG');
});

test.run();
