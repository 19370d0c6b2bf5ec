import { writeFile } from 'node:fs/promises';
import { CurlewError } from '../../src/core/errors.ts';
import { lostMachines, type ListedHost } from '../../src/machine/run/provided-hosts.ts';
import { createProvided, deleteProvided, listProvided, type Provider } from '../../src/machine/run/provider.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('providers of machines');

const P1 = { uid: 'paris/p1', name: 'p1', role: 'worker', config: { size: 'small', password: 'hush-hush' } };
const SSH = { hostKey: `SHA256:${'A'.repeat(43)}`, user: 'ops', port: 2222 };

interface Scene extends Tree {
  readonly provider: Provider;
}

/** A provider of some lines of sh. */
async function scene(script: string, more: Partial<Provider> = {}): Promise<Scene> {
  const box = await tree({ lab: `#!/bin/sh\ncd "$(dirname "$0")"\n${script}\n` });
  const env = { PATH: process.env['PATH'], CLOUD_TOKEN: 'open-sesame' };
  return { ...box, provider: { name: 'lab', program: box.at('lab'), env, ...more } };
}

function machines(...list: readonly object[]): string {
  return JSON.stringify({ apiVersion: 'provider.curlew.dev/v1', machines: list });
}

async function list({ provider }: Scene) {
  return listProvided(provider, { cluster: 'paris', machines: [P1] }, never);
}

/** What is said of a provider whose list prints this. */
async function said(text: string): Promise<string> {
  await using at = await scene('cat list');
  await writeFile(at.at('list'), text);
  try {
    await list(at);
    return 'nothing';
  } catch (error) {
    return error instanceof CurlewError ? error.message : String(error);
  }
}

test('a list has the machines of the cluster, and not those of others of the same account', async () => {
  await using at = await scene('cat >asked; cat list');
  const ready = { address: '10.0.0.1', ssh: SSH };
  const all = [{ uid: 'paris/p1', ...ready }, { uid: 'paris/p9' }, { uid: 'parish/p1' }, { uid: 'someone else' }];
  await writeFile(at.at('list'), machines(...all.slice(0, 3)));
  assert.equal(await list(at), [{ name: 'p1', ...ready }, { name: 'p9' }]);
});

test('a list that cannot be relied on says what is wrong with it', async () => {
  assert.is(
    await said('Error: login first'),
    'list by the provider lab: its answer is not one of provider.curlew.dev/v1: not JSON',
  );
  const begin = 'list by the provider lab: its answer is not one of provider.curlew.dev/v1: ';
  assert.match(await said('{"apiVersion":"provider.curlew.dev/v2","machines":[]}'), `${begin}apiVersion: `);
  assert.match(await said('{"apiVersion":"provider.curlew.dev/v1"}'), `${begin}machines: `);
  assert.match(await said(machines({ address: '10.0.0.1' })), `${begin}machines[0].uid: `);
  assert.match(await said(machines({ uid: 'paris/p1', address: '-oProxyCommand=x' })), `${begin}machines[0].address: `);
  assert.match(await said(machines({ uid: 'paris/p1', ssh: { user: 'ops' } })), `${begin}machines[0].ssh.hostKey: `);
  assert.match(await said(machines({ uid: 'paris/p1', ssh: { hostKey: 'x', port: 1e9 } })), 'a number up to 65535');
  assert.match(await said(machines({ uid: 'paris/p\u001b[2J' })), `${begin}machines[0].uid: not a uid`);
  assert.is(
    await said(machines({ uid: 'paris/p1' }, { uid: 'paris/p1' })),
    'list by the provider lab: it has two machines paris/p1',
  );
  assert.is(
    await said(machines({ uid: 'paris/-x' })),
    'list by the provider lab: paris/-x does not end with the name of a machine',
  );
});

test('a provider that hangs, dies, prints without end or is not there ends with its name and the reason', async () => {
  await using hangs = await scene('sleep 600', { limitMs: 300 });
  await assert.rejectsWith(
    list(hangs),
    'PROGRAM_FAILED',
    /^list by the provider lab, \S+lab: not finished after 0\.3 s/,
  );
  await using dies = await scene('kill -9 $$');
  await assert.rejectsWith(list(dies), 'PROGRAM_FAILED', /terminated by SIGKILL/);
  await using endless = await scene('yes');
  await assert.rejectsWith(list(endless), 'PROGRAM_FAILED', /more than 4194304 bytes of output/);
  const gone = { ...hangs, provider: { ...hangs.provider, program: '/nowhere/lab' } };
  await assert.rejectsWith(list(gone), 'NOT_FOUND', /^list by the provider lab, \/nowhere\/lab: it is not installed/);
});

test('what a provider says when it fails is shown without the secrets that it has', async () => {
  await using at = await scene(
    `echo "denied: $CLOUD_TOKEN $(sed 's/.*password":"\\([^"]*\\).*/\\1/')" >&2; echo hidden; exit 3`,
  );
  const error = await list(at).catch((problem: unknown) => problem);
  assert.match(String(error), 'status 3');
  assert.match(String(error), 'denied: [secret] [secret]');
  assert.ok(!/open-sesame|hush-hush|hidden/.test(String(error)));
});

test('secrets below others, in several lines, and in variables of any usual name are hidden, too', async () => {
  await using at = await scene(`cat >/dev/null; echo "$SSHPASS $PEM_KEY pa55word 778899" >&2; exit 3`);
  const env = { ...at.provider.env, SSHPASS: 'abracadabra', PEM_KEY: 'first-line\nsecond-line' };
  const config = { login: { password: 'pa55word', tokens: [778899] } };
  const error = await listProvided(
    { ...at.provider, env },
    { cluster: 'paris', machines: [{ ...P1, config }] },
    never,
  ).catch((problem: unknown) => problem);
  assert.match(String(error), 'status 3');
  assert.ok(!/abracadabra|first-line|second-line|pa55word|778899/.test(String(error)), String(error));
});

test('a list that fails once while a machine comes or goes is asked again', async () => {
  await using at = await scene(`cat >/dev/null
case $1 in
  list) if [ -e failed ]; then cat ready; else touch failed; echo 'busy' >&2; exit 1; fi;;
  *) echo '{"apiVersion":"provider.curlew.dev/v1","machine":{"uid":"paris/p1"}}';;
esac`);
  await writeFile(at.at('ready'), machines({ uid: 'paris/p1', address: '10.0.0.1', ssh: SSH }));
  assert.equal(await createProvided(at.provider, P1, never), { name: 'p1', address: '10.0.0.1', ssh: SSH });
  await using down = await scene(
    `cat >/dev/null; [ $1 != list ] || { echo 'down' >&2; exit 1; }; echo '{"apiVersion":"provider.curlew.dev/v1","machine":{"uid":"paris/p1"}}'`,
    { limitMs: 500 },
  );
  await assert.rejectsWith(
    deleteProvided(down.provider, P1, never),
    'PROGRAM_FAILED',
    /^list by the provider lab, .*down/s,
  );
});

test('a machine is created once its list has an address and a host key, whatever its own answer says', async () => {
  await using at = await scene(`input=$(cat); echo "$1 $input" >>calls
case $1 in
  create) echo '{"apiVersion":"provider.curlew.dev/v1","machine":{"uid":"paris/p1","address":"6.6.6.6"}}';;
  list) if [ -e seen ]; then cat ready; else touch seen; cat pending; fi;;
esac`);
  await writeFile(at.at('pending'), machines({ uid: 'paris/p1', address: '10.0.0.1' }));
  await writeFile(at.at('ready'), machines({ uid: 'paris/p1', address: '10.0.0.1', ssh: SSH }));
  assert.equal(await createProvided(at.provider, P1, never), { name: 'p1', address: '10.0.0.1', ssh: SSH });
});

test('an answer about another machine, and a machine that does not come or go, are failures', async () => {
  const answer = (uid: string): string => JSON.stringify({ apiVersion: 'provider.curlew.dev/v1', machine: { uid } });
  await using other = await scene(`echo '${answer('paris/p2')}'`);
  await assert.rejectsWith(
    createProvided(other.provider, P1, never),
    'PROGRAM_FAILED',
    /^create by the provider lab: it answers for another machine than paris\/p1/,
  );
  await using same = await scene(
    `case $1 in list) cat list;; *) sed 's/.*"uid":"\\([^"]*\\).*/{"apiVersion":"provider.curlew.dev\\/v1","machine":{"uid":"\\1"}}/';; esac`,
    { limitMs: 600 },
  );
  await writeFile(same.at('list'), machines({ uid: 'paris/p2' }));
  const P2 = { ...P1, uid: 'paris/p2', name: 'p2' };
  await Promise.all([
    assert.rejectsWith(
      createProvided(same.provider, P1, never),
      'PROGRAM_FAILED',
      /its list still has no address and host key of paris\/p1/,
    ),
    assert.rejectsWith(deleteProvided(same.provider, P2, never), 'PROGRAM_FAILED', /its list still has paris\/p2/),
  ]);
  await deleteProvided(same.provider, P1, never);
});

test('nothing is done while a provider has none of several machines of a cluster, or may look elsewhere for a control plane', () => {
  const host = (name: string, by: string, exists: boolean): ListedHost => {
    const role = name.startsWith('cp') ? 'control-plane' : 'worker';
    const provided = { by: { name: by, program: `/${by}`, env: {} }, wanted: { uid: `paris/${name}`, name } };
    return { host: { name, role, machine: { name, role }, ssh: { name, address: '', hostKey: '' }, provided }, exists };
  };
  const lost = (hosts: readonly ListedHost[], nodes?: readonly string[], madeBy?: string): string =>
    lostMachines(hosts, { nodes: nodes && new Set(nodes), madeBy })
      .map(({ reason }) => reason)
      .join('\n');
  const cloud = [host('cp1', 'cloud', true), host('w1', 'lab', false), host('w2', 'lab', false)];
  assert.match(lost(cloud, ['cp1', 'w1', 'w2']), /^the provider lab has none of the 2 machines that the cluster has/);
  assert.is(lost(cloud, ['cp1', 'w1']), '');
  assert.is(lost([...cloud, host('w3', 'lab', true)], ['cp1', 'w1', 'w2', 'w3']), '');
  // They come for the first time.
  assert.is(lost(cloud, ['cp1']), '');
  const control = [host('cp1', 'cloud', false), host('cp2', 'cloud', true)];
  assert.match(lost(control, undefined, '/paris.conf'), 'by /paris.conf the cluster was made before');
  assert.is(lost(control), '');
  assert.is(lost(cloud, undefined, '/paris.conf'), '');
});

test.run();
