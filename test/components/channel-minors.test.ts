/** One index for API servers of two minors of Kubernetes: each gets its own versions, and an upgrade moves what its ranges say. */
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { applyChannels, type ChannelPass } from '../../src/app/channel-apply.ts';
import { never, noReport } from '../support/context.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, OLDER_API_SERVER, startApiServer } from './support/api-server.ts';
import { configMap, outcomes } from './support/channel-scene.ts';
import { cannotRun, oracle } from './support/programs.ts';

const test = suite('components/channel-minors', { timeoutMs: 240_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS, OLDER_API_SERVER);

/** Looks like an index of kops: three versions of each add-on, whose ranges meet at minors. */
const RANGES = { dns: ['<1.35.0', '>=1.35.0 <1.36.0', '>=1.36.0'], net: ['<1.34.0', '>=1.34.0', '>=1.38.0'] } as const;

if (reason === undefined) {
  test('two clusters get their own versions, and an upgraded one moves exactly the add-ons whose ranges say so', async () => {
    await using box = await tree();
    const entries: object[] = [];
    for (const [name, ranges] of Object.entries(RANGES)) {
      for (const [at, kubernetesVersion] of ranges.entries()) {
        const manifest = `${name}-v${at}.yaml`;
        const objects = [configMap(name, 'default', { version: `v${at}` }), configMap(`${name}-v${at}`, 'default')];
        const text = objects.map((object) => JSON.stringify(object)).join('\n---\n');
        await writeFile(box.at(manifest), text);
        const manifestHash = createHash('sha256').update(text).digest('hex');
        const kinds = {
          kinds: [
            { kind: 'ConfigMap', namespaces: ['default'], labelSelector: `fleet.curlew.dev/addon=kube-system.${name}` },
          ],
        };
        entries.push({
          name,
          id: `v${at}`,
          manifest,
          manifestHash,
          kubernetesVersion,
          prune: kinds,
          selector: { 'k8s-addon': name },
        });
      }
    }
    await writeFile(
      box.at('addon.yaml'),
      JSON.stringify({ kind: 'Addons', metadata: { name: 'bootstrap' }, spec: { addons: entries } }),
    );
    await using older = await startApiServer(box.at('older'), { first: OLDER_API_SERVER });
    await using newer = await startApiServer(box.at('newer'));
    const apply = async (kubeconfig: string): Promise<ChannelPass> => {
      const context = { signal: never, report: noReport, env: { PATH: process.env['PATH'] }, cwd: box.path };
      return applyChannels({ channels: ['addon.yaml'], compat: 'kops', kubeconfig }, context);
    };
    const installed = async ({ kubectl }: typeof older): Promise<string> =>
      kubectl([
        'get',
        'configmap',
        '-l',
        'fleet.curlew.dev/addon',
        '-o',
        'jsonpath={range .items[*]}{.metadata.name}={.data.version} {end}',
      ]);

    const [first, second] = [await apply(older.kubeconfig), await apply(newer.kubeconfig)];
    assert.match(first.cluster.kubernetes, /^v1\.35\./);
    assert.match(second.cluster.kubernetes, /^v1\.36\./);
    assert.equal(
      [outcomes(first), outcomes(second)],
      [
        ['dns install applied', 'net install applied'],
        ['dns install applied', 'net install applied'],
      ],
    );
    assert.is(await installed(older), 'dns=v1 dns-v1= net=v1 net-v1= ');
    assert.is(await installed(newer), 'dns=v2 dns-v2= net=v1 net-v1= ');

    await older.kill();
    await older.startAgain(oracle('../api-server/kube-apiserver'));
    const upgraded = await apply(older.kubeconfig);
    assert.match(upgraded.cluster.kubernetes, /^v1\.36\./);
    assert.equal(outcomes(upgraded), ['dns update applied', 'net none unchanged']);
    assert.equal(
      upgraded.addons[0]?.objects.map(({ object, change }) => `${change} ${object}`),
      ['change ConfigMap default/dns', 'create ConfigMap default/dns-v2', 'delete ConfigMap default/dns-v1'],
    );
    assert.is(await installed(older), 'dns=v2 dns-v2= net=v1 net-v1= ');
    assert.equal(outcomes(await apply(older.kubeconfig)), ['dns none unchanged', 'net none unchanged']);
  });
} else test.skip('one index for two minors of Kubernetes', reason);

test.run();
