/** Verbs of kURL's program `kurl`, over an API server and a kubectl that both answer from one script. */
import { execFileSync } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { readFile, writeFile } from 'node:fs/promises';
import { outdatedDeployments, cephTrouble } from '../../../src/cli/kurl/ceph.ts';
import { parseDf } from '../../../src/cli/kurl/free-space.ts';
import { defaultInterface, defaultInterface6, interfaceOfAddress } from '../../../src/cli/kurl/interfaces.ts';
import * as assert from '../../support/assert.ts';
import { startKubeServer, statusReply } from '../../support/kube-server.ts';
import { kurlTool } from '../../support/kurl-tool.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('cli/kurl/verbs', { timeoutMs: 60_000 });

const CERTIFICATE = await makeCertificate();

interface Cluster extends Tree {
  /** Calls a verb; what it says on the way is added to what it prints. */
  readonly kurl: (words: string) => Promise<string>;
  /** The words of each call of kubectl, and `api get --raw PATH` of each request. */
  readonly calls: () => Promise<string>;
}

/** `answers`: arms of a `case` over the words of kubectl, and of requests as `api get --raw PATH`. */
async function cluster(answers: string, files: Readonly<Record<string, string>> = {}): Promise<Cluster> {
  const kubectl = `#!/bin/bash\ncd "$HOME"\necho "$*" >>calls\ncase "$*" in\n${answers}\n*) echo "Error from server (NotFound): $*" >&2; exit 1;;\nesac\n`;
  const box = await tree({ 'path/kubectl': kubectl, calls: '', ...files });
  const env = { PATH: `${box.at('path')}:/usr/bin:/bin`, KUBECONFIG: box.at('conf'), HOME: box.path };
  const server = await startKubeServer(({ path }) => {
    try {
      const words = ['api', 'get', '--raw', path];
      return { status: 200, body: execFileSync(box.at('path/kubectl'), words, { env, stdio: 'pipe' }) };
    } catch (error) {
      const away = !String((error as { readonly stderr?: unknown }).stderr).includes('NotFound');
      return away ? statusReply(503, 'ServiceUnavailable') : statusReply(404, 'NotFound');
    }
  }, CERTIFICATE);
  await writeFile(box.at('conf'), server.kubeconfig());
  return {
    ...box,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
    kurl: async (words) => {
      const said: string[] = [];
      const last = await kurlTool(['kurl', ...words.split(' ')], { env, say: (line) => said.push(`${line}\n`) });
      return [...said, last].join('');
    },
    calls: async () => readFile(box.at('calls'), 'utf8'),
  };
}

test('netutil iface-from-ip names the interface of an address, as a hook of a network asks', async () => {
  const [name = '', [{ address } = { address: '' }] = []] =
    Object.entries(networkInterfaces()).find(([, all = []]) => all.some((one) => one.family === 'IPv4')) ?? [];
  assert.is(await kurlTool(['kurl', 'netutil', 'iface-from-ip', address]), `${name}\n`);
  await assert.rejectsWith(kurlTool(['kurl', 'netutil', 'iface-from-ip', '192.0.2.77']), 'NOT_FOUND', /192\.0\.2\.77/);
  for (const words of [['10.0.0'], ['host'], [''], [], ['127.0.0.1', '127.0.0.2'], ['--x', '127.0.0.1']]) {
    await assert.rejectsWith(kurlTool(['kurl', 'netutil', 'iface-from-ip', ...words]), 'USAGE');
  }
});

test('an IPv6 address counts in any of its forms, and one of IPv4 in that of IPv6', () => {
  const one = { netmask: '', mac: '', internal: false, cidr: null };
  const interfaces = {
    eth0: [{ ...one, family: 'IPv4' as const, address: '10.0.0.7' }],
    eth1: [{ ...one, family: 'IPv6' as const, scopeid: 0, address: 'fd00::a:1' }],
    eth2: [{ ...one, family: 'IPv6' as const, scopeid: 3, address: 'fe80::1%eth2' }],
  };
  assert.is(interfaceOfAddress('10.0.0.7', interfaces), 'eth0');
  assert.is(interfaceOfAddress('::ffff:10.0.0.7', interfaces), 'eth0');
  assert.is(interfaceOfAddress('FD00:0:0:0:0:0:000A:0001', interfaces), 'eth1');
  assert.is(interfaceOfAddress('fe80::1', interfaces), 'eth2');
});

test("netutil default-gateway-iface: the first default route of the kernel's tables that leads anywhere", () => {
  const head = 'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n';
  const routes =
    '*\t00000000\t00000000\t0200\t0\t0\t0\t00000000\t0\t0\t0\n' +
    'eth1\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n' +
    'tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n' +
    'eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n';
  assert.is(defaultInterface(head + routes), 'eth0');
  assert.is(defaultInterface(head), undefined);
  const zero = '0'.repeat(32);
  const line = (flags: string, name: string): string =>
    `${zero} 00 ${zero} 00 fe80${'0'.repeat(27)}1 00000400 00000001 00000000 ${flags} ${name.padStart(8)}\n`;
  assert.is(defaultInterface6(line('00200200', 'lo') + line('00450003', 'eth3')), 'eth3');
  assert.is(defaultInterface6(line('00200200', 'lo')), undefined);
});

test('Ceph is healthy when nothing is moved or lacks but what lasts on a small cluster', () => {
  const checks = (...names: readonly string[]): object =>
    Object.fromEntries(names.map((name) => [name, { summary: { message: `${name} said` } }]));
  const warn = (...names: readonly string[]): object => ({
    health: { status: 'HEALTH_WARN', checks: checks(...names) },
  });
  const ok = { health: { status: 'HEALTH_OK', checks: {} } };
  assert.is(cephTrouble(ok), undefined);
  assert.is(cephTrouble(warn('POOL_NO_REDUNDANCY', 'TOO_MANY_PGS', 'RECENT_CRASH', 'MON_DISK_LOW')), undefined);
  assert.is(cephTrouble(warn('OSD_DOWN', 'MON_DOWN')), 'HEALTH_WARN: MON_DOWN said, OSD_DOWN said');
  assert.is(cephTrouble(warn('OSD_DOWN'), ['OSD_DOWN']), undefined);
  assert.is(cephTrouble({ ...ok, pgmap: { degraded_ratio: 0.25 } }), '25.00% degraded');
  assert.is(cephTrouble({ ...ok, pgmap: { recovering_bytes_per_sec: 5 } }), '5 bytes recovered per second');
  const event = (message: string): object => ({ message, progress: 0.5 });
  assert.is(cephTrouble({ ...ok, progress_events: { a: event('Global Recovery Event') } }), undefined);
  assert.is(
    cephTrouble({ ...ok, progress_events: { a: event('Global Recovery Event'), b: event('Rebalancing') } }),
    '2 tasks in progress, first: Rebalancing (50.00%)',
  );
  for (const strange of [{}, null, 'x', { health: [] }]) assert.match(cephTrouble(strange) ?? '', 'does not report');
});

const TOOLBOX = `
*' get --raw '*/deployments/rook-ceph-tools) echo '{"status":{"replicas":1}}';;
*' get --raw '*/pods?*) echo '{"items":[{"metadata":{"name":"tools-x"},"spec":{"containers":[{"name":"box"}]}}]}';;`;
const STATUS = `'-n rook-ceph exec tools-x -c box -- ceph status --format json')`;

test('rook wait-for-health waits until Ceph says five times in a row that it is healthy', async () => {
  await using box = await cluster(
    `${TOOLBOX}
${STATUS} head -n 1 says; sed -i 1d says;;`,
    {
      says: ['OK', 'OK', 'WARN', 'WARN', ...Array.from({ length: 5 }, () => 'OK')]
        .map((word) => `{"health":{"status":"HEALTH_${word}","checks":{"A":{"summary":{"message":"a is down"}}}}}\n`)
        .join(''),
    },
  );
  assert.is(
    await box.kurl('rook wait-for-health 1200'),
    'Waiting for Rook-Ceph to be healthy\nHEALTH_WARN: a is down\nRook is healthy\n',
  );
  assert.is(await readFile(box.at('says'), 'utf8'), '');
});

test('rook wait-for-health fails with what is wrong when its time is over, and after five failures in a row', async () => {
  const sick = `{"health":{"status":"HEALTH_ERR","checks":{"A":{"summary":{"message":"a is down"}}}}}`;
  await using box = await cluster(`${TOOLBOX}\n${STATUS} echo '${sick}';;`);
  await assert.rejectsWith(
    box.kurl('rook wait-for-health 1'),
    'CLUSTER_FAILED',
    /did not become healthy within 1 s: HEALTH_ERR: a is down/,
  );
  assert.match(await box.kurl('rook wait-for-health --ignore-checks B,A'), /Rook is healthy\n$/);
  await assert.rejectsWith(box.kurl('rook health'), 'CLUSTER_FAILED', /not healthy: HEALTH_ERR: a is down/);
  await using away = await cluster(`${TOOLBOX}\n${STATUS} echo 'no such container' >&2; exit 1;;`);
  await assert.rejectsWith(away.kurl('rook wait-for-health 1200'), 'CLUSTER_FAILED', /no such container/);
  assert.is((await away.calls()).match(/ceph status/g)?.length, 5);
});

test('a toolbox that is scaled down is started, and one that is not there is made of the image of the operator', async () => {
  const ok = `${STATUS} echo '{"health":{"status":"HEALTH_OK"}}';;`;
  const [, pods = ''] = TOOLBOX.trim().split('\n');
  await using down = await cluster(`*/deployments/rook-ceph-tools) echo '{}';;\n*scale*|*rollout*) ;;\n${pods}\n${ok}`);
  assert.is(await down.kurl('rook health'), 'Rook is healthy\n');
  assert.match(await down.calls(), '-n rook-ceph scale deployment rook-ceph-tools --replicas=1\n');
  const image = '{"spec":{"template":{"spec":{"containers":[{"image":"rook/ceph:v1.12.8"}]}}}}';
  await using none = await cluster(
    `*/deployments/rook-ceph-operator) echo '${image}';;\n'create -f -') cat >made;;\n*rollout*) ;;\n${pods}\n${ok}`,
  );
  await none.kurl('rook health');
  const made = await readFile(none.at('made'), 'utf8');
  assert.match(made, '"image":"rook/ceph:v1.12.8"');
  assert.match(made, '"name":"rook-ceph-tools","namespace":"rook-ceph"');
});

test('versions of Rook: labels that are not set yet or by mistake do not count, deployments that are not ready do', () => {
  const one = (name: string, version: string | undefined, ready = 1): object => ({
    metadata: { name, labels: { 'rook-version': version } },
    status: { replicas: 1, updatedReplicas: 1, readyReplicas: ready },
  });
  const items = [one('a', 'v1.12.8'), one('b', undefined, 0), one('c', 'v0.0.0', 0), one('d', '1.12.8')];
  assert.equal(outdatedDeployments(items, '1.12.8', 'rook-version'), []);
  assert.equal(outdatedDeployments([...items, one('e', 'v1.11.8'), one('f', 'v1.12.8', 0)], '1.12.8', 'rook-version'), [
    'still at 1.11.8: e',
    'not ready: f',
  ]);
});

test('rook wait-for-ceph-version waits for all deployments; an API server that is away is no answer', async () => {
  await using box = await cluster(
    `*deployments?labelSelector=rook_cluster%3Drook-ceph) n=$(head -n 1 says); sed -i 1d says
  if [ "$n" = away ]; then echo 'connection refused' >&2; exit 1; fi
  echo "{\\"items\\":[{\\"metadata\\":{\\"name\\":\\"mon\\",\\"labels\\":{\\"ceph-version\\":\\"$n\\"}}}]}";;`,
    { says: '17.2.5-0\naway\n17.2.5-0\n17.2.6-0\n' },
  );
  assert.is(
    await box.kurl('rook wait-for-ceph-version 17.2.6-0 --timeout=1200'),
    'Waiting for all deployments of Rook-Ceph to use Ceph 17.2.6-0\nstill at 17.2.5-0: mon\nCeph 17.2.6-0 has been rolled out\n',
  );
});

const CLASSES = `*storageclasses) cat classes;;`;

function classes(provisioner: string, more: object): string {
  const metadata = { name: 'one', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true', ...more } };
  return JSON.stringify({ items: [{ provisioner, metadata, parameters: { pool: 'pool', clusterID: 'rook-ceph' } }] });
}

test('cluster check-free-disk-space: Ceph keeps each byte as often as its pool says', async () => {
  await using box = await cluster(
    `${CLASSES}
*/cephblockpools/pool) echo '{"spec":{"replicated":{"size":3}}}';;
*/cephclusters/rook-ceph) echo '{"status":{"ceph":{"capacity":{"bytesAvailable":30000000000}}}}';;`,
    { classes: classes('rook-ceph.rbd.csi.ceph.com', {}) },
  );
  assert.is(
    await box.kurl('cluster check-free-disk-space --debug --openebs-image x --bigger-than 9Gi'),
    'Rook: 10 GB free, 9.66 GB required\n',
  );
  await assert.rejectsWith(
    box.kurl('cluster check-free-disk-space --bigger-than 10Gi'),
    'CLUSTER_FAILED',
    /not enough space on Rook: 10 GB free, 10\.7 GB required/,
  );
  await assert.rejectsWith(box.kurl('cluster check-free-disk-space --storageclass two'), 'CLUSTER_FAILED', /"two"/);
  await assert.rejectsWith(box.kurl('cluster check-free-disk-space --bigger-than 10Gx'), 'USAGE', /10Gx/);
});

test('cluster check-free-disk-space: OpenEBS is looked at on each node, and its pods are removed', async () => {
  const config = '- name: StorageType\n  value: hostpath\n- name: BasePath\n  value: /var/openebs/local\n';
  await using box = await cluster(
    `${CLASSES}
*/api/v1/nodes) echo '{"items":[{"metadata":{"name":"n1"}},{"metadata":{"name":"n2"}}]}';;
'create -f -') cat >>made;;
*/pods/curlew-free-space-*) echo '{"status":{"phase":"Succeeded"}}';;
*' logs curlew-free-space-'*) printf 'Filesystem 1-blocks Used Available Capacity Mounted on\\n/dev/sda2 60 50 10000000000 84%% /data\\n';;
*' delete pod curlew-free-space-'*) ;;`,
    { classes: classes('openebs.io/local', { 'cas.openebs.io/config': config }) },
  );
  assert.is(
    await box.kurl('cluster check-free-disk-space --openebs-image util:1 --bigger-than 1Gi'),
    'node n1: 10 GB free, 1.07 GB required\nnode n2: 10 GB free, 1.07 GB required\n',
  );
  const made = await readFile(box.at('made'), 'utf8');
  assert.match(made, '"path":"/var/openebs/local"');
  assert.match(made, '"nodeName":"n2"');
  assert.is((await box.calls()).match(/ delete pod /g)?.length, 2);
  await assert.rejectsWith(
    box.kurl('cluster check-free-disk-space --openebs-image util:1 --bigger-than 10Gi'),
    'CLUSTER_FAILED',
    /not enough space on node n1/,
  );
  assert.is(parseDf('df: /data: no such file\n'), undefined);
});

const LISTENERS = `{"items":[{"metadata":{"name":"l1"},"spec":{"nodeName":"n1"},"status":{"hostIP":"10.0.0.1"}},{"metadata":{"name":"l2"},"spec":{"nodeName":"n2"},"status":{"hostIP":"10.0.0.2"}}]}`;
/** What is sent to n1 arrives; to n2 only what `open` lets through. */
const NODES = `
'create -f -') cat >made; cp made "made.$(wc -l <calls)"
  word="$(grep -o 'echo [0-9a-f-]*' made | cut -d' ' -f2)"
  if grep -q ' 10.0.0.1 8472' made || [ -e open ]; then echo "$word" >>arrived; fi;;
*rollout*) ;;
*/pods?labelSelector=*) echo '${LISTENERS}';;
*/pods/curlew-*) echo '{"status":{"phase":"Succeeded"}}';;
*' logs l1 '*|*' logs l2 '*) cat arrived;;
*' logs '*|*delete*) ;;`;

test('netutil nodes-connectivity: each node reaches each other one, or it is said which does not; nothing is left', async () => {
  await using box = await cluster(NODES, { open: '', arrived: '' });
  const call = 'netutil nodes-connectivity --port 8472 --image util:1 --proto udp';
  assert.is(
    await box.kurl(call),
    'Testing whether all nodes can reach each other on port 8472/UDP; this may take a while\n' +
      'Testing from n2 to n1 (1/5)\nTesting from n1 to n2 (1/5)\nAll nodes can reach each other on port 8472/UDP\n',
  );
  assert.match(await box.calls(), '-n default delete daemonset curlew-nodes-connectivity');
  await using shut = await cluster(NODES, { arrived: '' });
  await assert.rejectsWith(
    shut.kurl(`${call} --udp-attempts=2`),
    'CLUSTER_FAILED',
    /8472\/UDP: no connection from n1 to n2/,
  );
  const calls = await shut.calls();
  assert.is(calls.match(/ delete pod /g)?.length, 3);
  assert.match(calls, 'delete daemonset');
  for (const words of ['--image i', '--port 1', '--port 1 --image i --proto sctp', '--port 99999 --image i']) {
    await assert.rejectsWith(shut.kurl(`netutil nodes-connectivity ${words}`), 'USAGE');
  }
});

test('a machine without a kubeconfig is told so, and a verb that is not answered says what it is', async () => {
  await assert.rejectsWith(kurlTool(['kurl', 'rook', 'wait-for-health']), 'CLUSTER_FAILED', /no kubeconfig/);
  await assert.rejectsWith(kurlTool(['kurl', 'rook', 'wait-for-health', 'soon']), 'USAGE', /"soon"/);
  await assert.rejectsWith(kurlTool(['kurl', 'host', 'preflight', 'spec.yaml']), 'UNSUPPORTED', /kurl host preflight/);
  await assert.rejectsWith(kurlTool(['kurl']), 'UNSUPPORTED');
});

test.run();
