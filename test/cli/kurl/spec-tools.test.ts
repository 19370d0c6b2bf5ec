import { execa } from 'execa';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SETTING_ROWS } from '../../../src/kurl/compatibility/settings.ts';
import * as assert from '../../support/assert.ts';
import { kurlTool } from '../../support/kurl-tool.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('cli/kurl/spec-tools');

async function call(...words: readonly string[]): Promise<string> {
  return kurlTool(words);
}

function spec(body: string, head = ''): string {
  return `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: demo}\n${head}spec:\n${body}`;
}

/** The lines of `yamltobash`, by variable. */
async function variables(body: string): Promise<ReadonlyMap<string, string>> {
  await using box = await tree({ 'spec.yaml': spec(body) });
  assert.is(await call('yamltobash', '-i', box.at('spec.yaml'), '-b', box.at('made/vars')), '');
  const lines = (await readFile(box.at('made/vars'), 'utf8')).trimEnd().split('\n');
  return new Map(lines.map((line) => [line.split('=', 1)[0] ?? '', line] as const));
}

test('case 20: yamltobash writes every variable, sorted, by the rules of values', async () => {
  const lines = await variables(`  contour: {version: latest}
  rook: {version: 1.0.4, cephReplicaCount: 4, storageClassName: ""}
  openebs: {version: 1.6.0, isCstorEnabled: true, isLocalPVEnabled: false}
  kubernetes: {version: 1.19.9, loadBalancerAddress: 192.168.1.1}
  weave: {version: 2.5.2, podCidrRange: /24}
  kurl: {airgap: true, additionalNoProxyAddresses: [10.0.0.1, .corp]}
  selinuxConfig: {disableSelinux: true, preserveConfig: true}
`);
  const expected = [
    'CONTOUR_VERSION="latest"',
    'CEPH_POOL_REPLICAS=4',
    'STORAGE_CLASS=',
    'OPENEBS_CSTOR=1',
    'OPENEBS_LOCALPV=',
    'LOAD_BALANCER_ADDRESS="192.168.1.1"',
    'HA_CLUSTER=1',
    'POD_CIDR_RANGE="24"',
    'AIRGAP=1',
    'OFFLINE_DOCKER_INSTALL=1',
    'ADDITIONAL_NO_PROXY_ADDRESSES=10.0.0.1,.corp',
    'DISABLE_SELINUX=',
    'PRESERVE_SELINUX_CONFIG=1',
    'HARD_FAIL_ON_LOOPBACK=1',
    'NO_MASQ_LOCAL=1',
    'KUBERNETES_CLUSTER_NAME="kubernetes"',
    'MASTER=',
  ];
  for (const line of expected) assert.is(lines.get(line.split('=', 1)[0] ?? ''), line);
  assert.equal([...lines.keys()], [...lines.keys()].toSorted());
  for (const { variable } of SETTING_ROWS) assert.ok(lines.has(variable), variable);
});

test('case 20: what is false where absent means true', async () => {
  const lines = await variables(
    '  docker: {version: 20.10.5, hardFailOnLoopback: false}\n  weave: {version: 2.5.2, noMasqLocal: false}\n',
  );
  assert.is(lines.get('HARD_FAIL_ON_LOOPBACK'), 'HARD_FAIL_ON_LOOPBACK=');
  assert.is(lines.get('NO_MASQ_LOCAL'), 'NO_MASQ_LOCAL=0');
});

test('nothing of a setting is run when the file of yamltobash is sourced', async () => {
  const hostile = '$(touch ran) `touch ran` "quoted" back\\slash $HOME';
  await using box = await tree({
    'spec.yaml': spec(
      `  velero: {version: 1.9.1, localBucket: ${JSON.stringify(hostile)}}\n  kurl: {additionalNoProxyAddresses: ["a b; touch ran"]}\n`,
    ),
  });
  await call('yamltobash', '-i', box.at('spec.yaml'), '-b', box.at('vars'));
  assert.is((await stat(box.at('vars'))).mode & 0o777, 0o600);
  const script = 'source ./vars; printf "%s\\n" "$VELERO_LOCAL_BUCKET" "$ADDITIONAL_NO_PROXY_ADDRESSES"; ls';
  const { stdout } = await execa('bash', ['-c', script], { cwd: box.path });
  assert.equal(stdout.split('\n'), [hostile, 'a b; touch ran', 'spec.yaml', 'vars']);
});

test('yamltobash refuses what is no spec, and writes nothing', async () => {
  for (const text of [
    '- 1\n',
    spec('  rook: 1\n'),
    spec('  rook: {version: 1.0.4, cephReplicaCount: many}\n'),
    'a: [',
  ]) {
    await using box = await tree({ 'spec.yaml': text });
    await assert.rejectsWith(call('yamltobash', '-i', box.at('spec.yaml'), '-b', box.at('vars')), 'SPEC_INVALID');
    await assert.rejectsWith(
      readFile(box.at('vars')).catch(() => call('none')),
      'UNSUPPORTED',
    );
  }
});

async function merged(base: string, overlay: string): Promise<string> {
  await using box = await tree({ 'base.yaml': base, 'over.yaml': overlay });
  await call('installermerge', '-m', box.at('specs/merged.yaml'), '-b', box.at('base.yaml'), '-o', box.at('over.yaml'));
  const text = await readFile(box.at('specs/merged.yaml'), 'utf8');
  return text;
}

test('installermerge: the overlay wins, a null keeps the base, the name is merged', async () => {
  const text = await merged(
    spec('  rook: {version: 1.0.4, nodes: "[]"}\n  weave: {version: 2.5.2}\n'),
    spec('  rook: {version: null, nodes: all}\n  ekco: {version: latest}\n'),
  );
  assert.is(
    text,
    'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata:\n  name: merged\nspec:\n  rook:\n    version: 1.0.4\n    nodes: all\n  weave:\n    version: 2.5.2\n  ekco:\n    version: latest\n',
  );
});

test('installermerge: of one side that is empty and another one, the other as it is written; of none, nothing', async () => {
  const text = spec('  # why\n  rook: {version: 1.0.4}\n');
  assert.is(await merged(text, '\n'), text.trim());
  assert.is(await merged('', text), text.trim());
  await assert.rejectsWith(merged('', spec('  rook: 1\n')), 'SPEC_INVALID');
  await using box = await tree({ 'a.yaml': '', 'b.yaml': '' });
  await call('installermerge', '-m', box.at('merged.yaml'), '-b', box.at('a.yaml'), '-o', box.at('b.yaml'));
  assert.equal((await readdir(box.path)).toSorted(), ['a.yaml', 'b.yaml']);
});

test('yamltobash writes what kURL does: no variable that it has not, quoted alike', async () => {
  const lines = await variables(`  contour: {version: ""}
  kubernetes: {version: 1.2.3, systemReservedResources: '{"cpu": "200m"}'}
  helm:
    helmfileSpec: |
      repositories:
      - name: "x"
`);
  assert.is(lines.get('CONTOUR_VERSION'), 'CONTOUR_VERSION=');
  assert.is(lines.get('SYSTEM_RESERVED'), 'SYSTEM_RESERVED="{\\"cpu\\": \\"200m\\"}"');
  assert.ok(lines.has('- name: \\"x\\"'));
  for (const name of ['PROXY_HTTPS_ADDRESS', 'INSTALLER_ID', 'NODELESS_VERSION']) assert.not(lines.has(name), name);
});

test('installermerge: another kind and leading non-breaking spaces are refused', async () => {
  const base = spec('  rook: {version: 1.0.4}\n');
  await assert.rejectsWith(merged(base, base.replace('Installer', 'Deployment')), 'SPEC_INVALID');
  await assert.rejectsWith(merged(base, base.replace('  rook', '\u00a0 rook')), 'SPEC_INVALID');
});

async function flagged(box: Tree, flags: string): Promise<string> {
  assert.is(await call('bashmerge', '-c', box.at('spec.yaml'), '-f', flags), '');
  return readFile(box.at('spec.yaml'), 'utf8');
}

test('case 21: bashmerge writes flags into the spec, whose name stays', async () => {
  await using box = await tree({
    'spec.yaml': spec('  kubernetes: {version: 1.19.9}\n  kurl: {additionalNoProxyAddresses: [registry.internal]}\n'),
  });
  const text = await flagged(
    box,
    ' kubernetes-version=v1.17.3 kubeadm-token=token=with=equals= additional-no-proxy-addresses=10.0.0.1 ha ',
  );
  assert.is(
    text,
    'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata:\n  name: demo\nspec:\n  kubernetes:\n    version: 1.17.3\n    kubeadmToken: token=with=equals=\n    HACluster: true\n  kurl:\n    additionalNoProxyAddresses:\n      - registry.internal\n      - 10.0.0.1\n',
  );
});

test('flags for an add-on that the spec does not have become variables all the same', async () => {
  await using box = await tree({ 'spec.yaml': spec('  ekco: {version: latest}\n') });
  await flagged(box, 'ha kubernetes-master-address=10.0.0.1');
  await flagged(box, 'control-plane');
  await call('yamltobash', '-i', box.at('spec.yaml'), '-b', box.at('vars'));
  const text = await readFile(box.at('vars'), 'utf8');
  for (const line of ['HA_CLUSTER=1', 'KUBERNETES_MASTER_ADDR="10.0.0.1"', 'MASTER=1', 'KUBERNETES_VERSION=']) {
    assert.ok(text.split('\n').includes(line), line);
  }
});

test('case 21: bashmerge refuses flags that it does not know, or that lack their value', async () => {
  const before = spec('  kubernetes: {version: 1.19.9}\n');
  await using box = await tree({ 'spec.yaml': before });
  for (const flags of ['certkey', 'BaD FlAgS', 'cert-key', 'kubeadm-token=']) {
    await assert.rejectsWith(flagged(box, flags), 'USAGE');
    assert.is(await readFile(box.at('spec.yaml'), 'utf8'), before);
  }
});

test('case 30: vendorflights writes the host preflights of a spec, if it has any', async () => {
  const preflights = (version: string): string =>
    `  kurl:\n    hostPreflights:\n      apiVersion: troubleshoot.sh/${version}\n      kind: HostPreflight\n      spec: {collectors: [{cpu: {}}]}\n`;
  await using box = await tree({
    'with.yaml': spec(preflights('v1beta2')),
    'old.yaml': spec(preflights('v1beta1')),
    'without.yaml': spec('  kurl: {airgap: true}\n'),
  });
  assert.is(await call('vendorflights', '-i', box.at('with.yaml'), '-o', box.at('a/b.yaml')), '');
  assert.is(
    await readFile(box.at('a/b.yaml'), 'utf8'),
    'apiVersion: troubleshoot.sh/v1beta2\nkind: HostPreflight\nspec:\n  collectors:\n    - cpu: {}\n',
  );
  await call('vendorflights', '-i', box.at('without.yaml'), '-o', box.at('none.yaml'));
  await assert.rejectsWith(call('vendorflights', '-i', box.at('none.yaml'), '-o', join(box.path, 'x')), 'NOT_FOUND');
  const old = call('vendorflights', '-i', box.at('old.yaml'), '-o', box.at('none.yaml'));
  await assert.rejectsWith(old, 'SPEC_INVALID', /troubleshoot\.sh\/v1beta2/);
});

test('words that are missing or unknown are told', async () => {
  for (const words of [
    ['yamltobash', '-i', 'x', '-z'],
    ['bashmerge', '-c'],
    ['installermerge'],
    ['vendorflights', '-o', 'x'],
  ]) {
    await assert.rejectsWith(call(...words), 'USAGE');
  }
});

test.run();
