import type { HostFacts } from '../../src/machine/facts.ts';
import type { ClusterLook } from '../../src/machine/run/look.ts';
import { lookPatiently } from '../../src/machine/run/patient-look.ts';
import type { Ssh } from '../../src/machine/ssh/ssh.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { given, look } from './looked.ts';

const test = suite('looks that wait', { timeoutMs: 60_000 });

const LOST = 'its cluster cannot be asked yet: cp1 says: etcd has lost its quorum: 1 of 3 members answers';

/** How often it looks, until the cluster answers at the third time. */
async function looksOf(reason: string, bare: readonly string[]): Promise<number> {
  const well = look(given(['cp1', 'cp2', 'cp3', 'w1']));
  const hosts = well.hosts.map((one) =>
    bare.includes(one.host.name) ? { ...one, facts: { ...one.facts, isControlPlane: false } as HostFacts } : one,
  );
  const away: ClusterLook = { ...well, hosts, unasked: [{ host: 'cp1', reason }] };
  let looks = 0;
  const once = async (): Promise<ClusterLook> => {
    looks += 1;
    return looks === 3 ? well : away;
  };
  const patience = { owner: 'me', doing: 'repair cp2', isLocked: true, patienceMs: 20, isIdle: () => looks < 3 };
  await lookPatiently(once, patience, { ssh: {} as Ssh, signal: never, report: noReport });
  return looks;
}

test('a quorum that is lost with most control planes is not waited for', async () => {
  assert.is(await looksOf(LOST, ['cp2', 'cp3']), 1);
  assert.ok((await looksOf(LOST, ['cp3'])) > 1, 'etcd may be starting on two of them');
  assert.ok((await looksOf('its cluster cannot be asked yet: etcd does not answer', ['cp2', 'cp3'])) > 1);
});

test('a control plane says why its API server is not reached before those who ask end it', async () => {
  await using box = await tree({
    'admin.conf': `apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: { server: 'https://127.0.0.1:1' } }]
users: [{ name: u, user: { token: t } }]
contexts: [{ name: x, context: { cluster: c, user: u } }]
current-context: x
`,
  });
  const since = performance.now();
  const { exitCode, stderr } = await runCommand(['cluster', 'nodes'], box.path, { KUBECONFIG: box.at('admin.conf') });
  assert.is(exitCode, 33);
  assert.match(stderr, /cannot list nodes.*127\.0\.0\.1:1/);
  assert.ok(performance.now() - since < 40_000);
});

test.run();
