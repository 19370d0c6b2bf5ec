/** Add-ons of a channel around an upgrade of the machines of a cluster: hosts over real SSH servers, and an API server in memory. */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { applyChannels } from '../../src/app/channel-apply.ts';
import { applyCluster } from '../../src/app/cluster-apply.ts';
import { clusterPlan } from '../../src/app/cluster-plan.ts';
import type { PlannedCluster } from '../../src/machine/run/planned-cluster.ts';
import { startMemoryApiServer, type MemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { missing, unless } from '../support/needs.ts';
import { hostScene, type HostScene } from '../support/ssh-hosts.ts';
import { SSHD } from '../support/sshd.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { startServer } from '../support/web-server.ts';

const test = suite('components/cluster-ssh-addons', { timeoutMs: 120_000 });
const isRoot = process.getuid?.() === 0;
const tests = unless(isRoot ? missing(SSHD, 'ssh', 'ssh-keygen', 'unshare', 'flock') : 'needs root', test);

const FILES = { files: ['paris.yaml'], bundle: 'b.tar.gz', channel: ['channel.yaml'] };

/** What a control plane says of the records of channels, in the form of `curlew cluster nodes`. */
function listing({ url }: MemoryApiServer): string {
  const code = `process.env.NODE_TLS_REJECT_UNAUTHORIZED = 0;
const answer = await fetch('${url}/api/v1/namespaces/kube-system/configmaps/curlew-addons', { headers: { authorization: 'Bearer test-token' } });
const records = Object.values((await answer.json()).data ?? {}).map((text) => JSON.parse(text));
console.log(JSON.stringify(records.map(({ addon: name, applied: { version, hash, channel } }) => ({ name, version, hash, channel }))));`;
  return `'${process.execPath}' --no-warnings --input-type=module -e "$(cat <<'END'\n${code}\nEND\n)"\n`;
}

/** A channel with these versions of dns, and the Kubernetes that each is for. */
async function writeChannel(at: HostScene, ranges: Readonly<Record<string, string>>): Promise<void> {
  const addons = Object.entries(ranges).map(([version, kubernetesVersion]) => {
    return { name: 'dns', version, kubernetesVersion, manifest: `dns-${version}.yaml` };
  });
  for (const { version, manifest } of addons) {
    const metadata = { name: 'dns', namespace: 'default' };
    await writeFile(
      at.at(manifest),
      JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { version } }),
    );
  }
  const metadata = { name: 'stable' };
  const channel = { apiVersion: 'fleet.curlew.dev/v1alpha1', kind: 'Channel', metadata, spec: { addons } };
  await writeFile(at.at('channel.yaml'), JSON.stringify(channel));
}

/** A cluster whose only machine is one patch behind its file, with dns 1.0.0. */
async function clusterBehind(at: HostScene, told: string[]): Promise<MemoryApiServer & { upgraded: () => void }> {
  let version = 'v1.34.3';
  const api = await startMemoryApiServer({
    get version() {
      return version;
    },
    before: (request) => {
      if (/^PATCH \S*\/configmaps\/dns\?(?!.*dryRun)/.test(request)) told.push(`dns changes at ${version}`);
    },
  });
  await at.write({ p1: { role: 'control-plane' } });
  await at.apply();
  await writeFile(at.at('paris.conf'), api.kubeconfig);
  await at.on('p1', `sed -i 's/v1.34.4/v1.34.3/g' ${at.api}/node-p1`);
  await writeChannel(at, { '1.0.0': '<1.34.4' });
  await applyChannels({ channels: ['channel.yaml'], kubeconfig: 'paris.conf' }, at.context);
  await writeFile(`${at.api}/addons`, listing(api));
  told.length = 0;
  const upgraded = (): void => {
    version = 'v1.34.4';
  };
  return { ...api, upgraded };
}

function titles({ steps }: PlannedCluster): readonly string[] {
  return steps.map(({ host, phase, addon, to }) => [host ?? [], phase, addon ?? [], to].flat().join(' '));
}

tests('an add-on moves before the upgrade that its version does not fit, and after it to the newest', async () => {
  await using at = await hostScene('p1');
  const told: string[] = [];
  await using api = await clusterBehind(at, told);
  await writeChannel(at, { '1.0.0': '<1.34.4', '1.1.0': '>=1.34.0', '2.0.0': '>=1.34.4' });
  const planned = await clusterPlan(FILES, at.context);
  assert.equal([planned.held, planned.refused], [[], []]);
  assert.equal(
    titles(planned).filter((title) => /addon|upgrade/.test(title)),
    ['addon dns 1.1.0', 'p1 upgrade v1.34.4', 'addon dns 2.0.0'],
  );
  assert.equal(told, []);
  const applied = await applyCluster(FILES, {
    ...at.context,
    report: (event) => {
      if (event.type === 'step-done' && event.id === 'upgrade p1') api.upgraded();
    },
  });
  assert.equal([applied.failed, applied.held, applied.steps], [[], [], []]);
  assert.equal(
    applied.done.map(({ host, phase, addon }) => [host, phase, addon ?? []].flat().join(' ')),
    ['paris addon dns 1.1.0', 'p1 images', 'p1 upgrade', 'paris addon dns 2.0.0'],
  );
  assert.equal(told, ['dns changes at v1.34.3', 'dns changes at v1.34.4']);
});

tests('a channel of a web server with its own authority needs --ca-file, and moves add-ons by it', async () => {
  await using at = await hostScene('p1');
  const told: string[] = [];
  await using _api = await clusterBehind(at, told);
  await writeChannel(at, { '1.0.0': '<1.34.4', '1.1.0': '>=1.34.0' });
  const certificate = await makeCertificate();
  await writeFile(at.at('ca.pem'), certificate.ca);
  await using web = await startServer(
    ({ path }) => ({ status: 200, body: readFileSync(at.at(path.slice(1)), 'utf8') }),
    { tls: certificate },
  );
  const files = { ...FILES, channel: [`${web.url}/channel.yaml`] };
  await assert.rejectsWith(clusterPlan(files, at.context), 'FETCH_FAILED', /certificate/);
  const { done } = await applyCluster({ ...files, caFile: 'ca.pem' }, at.context);
  assert.equal(done.map(({ phase, addon }) => [phase, addon ?? []].flat().join(' '))[0], 'addon dns 1.1.0');
  assert.equal(told, ['dns changes at v1.34.3']);
});

tests('where no version fits both sides, nothing goes up, and the reason says what lets it', async () => {
  await using at = await hostScene('p1');
  await using _api = await clusterBehind(at, []);
  await writeChannel(at, { '1.0.0': '<1.34.4', '2.0.0': '>=1.34.4' });
  const applied = await applyCluster(FILES, at.context);
  assert.equal([applied.done, applied.failed, titles(applied)], [[], [], []]);
  const reason = applied.held[0]?.reason ?? '';
  assert.match(
    reason,
    /^gap at v1\.34\.4: dns 1\.0\.0 does not fit it, and no version to move to fits v1\.34\.3 as well; /,
  );
  assert.match(reason, /--allow-gap moves dns right after the step/);
  const passed = await clusterPlan({ ...FILES, allowGap: true }, at.context);
  assert.equal(
    [titles(passed), passed.held],
    [['p1 images v1.34.4', 'p1 snapshot v1.34.4', 'p1 upgrade v1.34.4', 'addon dns 2.0.0'], []],
  );
});

tests('an add-on that the API server refuses stops the upgrade before it begins', async () => {
  await using at = await hostScene('p1');
  await using _api = await clusterBehind(at, []);
  await writeChannel(at, { '1.0.0': '<1.34.4', '1.1.0': '>=1.34.0' });
  await writeFile(at.at('dns-1.1.0.yaml'), 'apiVersion: example.com/v1\nkind: Unknown\nmetadata: { name: dns }\n');
  const before = await at.calls();
  const applied = await applyCluster(FILES, at.context);
  assert.equal(applied.done, []);
  assert.equal(
    applied.failed.map(({ host, phase, addon }) => [host, phase, addon]),
    [['paris', 'addon', 'dns 1.1.0']],
  );
  assert.match(applied.failed[0]?.reason ?? '', 'Unknown');
  assert.equal(await at.calls(), before);
});

test.run();
