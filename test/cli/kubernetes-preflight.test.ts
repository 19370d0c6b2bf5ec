/** The host preflights of the package of kubernetes, with facts of machines that a cluster cannot be made of. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('cli/kubernetes-preflight');
const SPEC = join(import.meta.dirname, '../../packages/kubernetes/template/files/host-preflight.yaml');
const SWAPS = 'Filename Type Size Used Priority\n/swapfile file 2097148 0 -2\n';

interface Fact {
  readonly kind: string;
  readonly name: string;
  data: unknown;
}

/** By kind of collector: what differs from this machine. */
type Hardware = Readonly<Record<string, object>>;

/** Facts of this machine, saved once; those of programs are replaced by what each trial names. */
async function factsWith(box: Tree, outputs: Readonly<Record<string, string>>, hardware: Hardware): Promise<string> {
  const saved = box.at('facts.json');
  const spec = await installer(box, '');
  await runCommand(['preflight', SPEC, '--installer', spec, '--exclude-builtin', '--save-facts', saved], box.path);
  const file = JSON.parse(await readFile(saved, 'utf8')) as { readonly facts: readonly Fact[] };
  for (const fact of file.facts) {
    if (fact.kind === 'run')
      fact.data = { exitCode: 0, stdout: outputs[fact.name.replace('kubernetes-', '')] ?? '', stderr: '', files: {} };
    else fact.data = { ...Object(fact.data), ...hardware[fact.kind] };
  }
  const path = box.at('changed.json');
  await writeFile(path, JSON.stringify(file));
  return path;
}

async function installer(box: Tree, setting: string): Promise<string> {
  const path = box.at('installer.yaml');
  const head = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: test}\nspec:\n';
  await writeFile(path, `${head}  kubernetes:\n    version: 1.37.2\n${setting}`);
  return path;
}

/** What is shown. */
async function results(
  outputs: Readonly<Record<string, string>>,
  setting = '',
  { hardware = {}, flags = [] }: { readonly hardware?: Hardware; readonly flags?: readonly string[] } = {},
): Promise<string> {
  await using box = await tree();
  const facts = await factsWith(box, outputs, hardware);
  const spec = await installer(box, setting);
  const words = ['preflight', SPEC, '--installer', spec, '--exclude-builtin', '--from', facts, ...flags];
  const { stdout } = await runCommand(words, box.path);
  return stdout;
}

test('swap fails by its name, unless the kubelet is told to run with it', async () => {
  assert.match(await results({ swap: SWAPS }), /\[FAIL\] Swap: Swap is on/);
  assert.match(await results({ swap: SWAPS.split('\n')[0] ?? '' }), /\[PASS\] Swap/);
  const setting = '    kubeletConfiguration: |\n      failSwapOn: false\n';
  assert.not.match(await results({ swap: SWAPS }, setting), /Swap is on/);
});

test('missing modules and control groups fail, and what may stop pods later is a warning', async () => {
  const text = await results({
    modules: 'br_netfilter\n',
    forwarding: '/etc/sysctl.d/99-hardening.conf\n',
    cgroups: 'version 1\nmissing: memory\n',
  });
  assert.match(text, /\[FAIL\] Kernel modules of Kubernetes/);
  assert.match(text, /\[WARN\] Forwarding/);
  assert.match(text, /\[FAIL\] Control groups/);
  assert.match(text, /\[WARN\] Version of control groups/);
});

test('another architecture, too little memory and too little space fail, each by its name', async () => {
  const hardware = {
    cpu: { machineArch: 'aarch64' },
    memory: { total: 1600 * 2 ** 20 },
    diskUsage: { totalBytes: 2 ** 33, usedBytes: 2 ** 33 - 2 ** 29 },
  };
  const text = (await results({}, '', { hardware })).replaceAll(/\n +/g, ' ');
  assert.match(text, "[FAIL] Processor of Kubernetes' programs: The package has programs for x86-64 only");
  assert.match(text, '[FAIL] Memory for Kubernetes: kubeadm requires 1700 MiB of memory');
  assert.match(text, '[FAIL] Space for the kubelet: The file system of /var/lib/kubelet has less than 1 GiB left');
  const passed = await results({}, '', { hardware, flags: ['--ignore', 'Memory for Kubernetes'] });
  assert.match(passed, '[FAIL] Memory for Kubernetes: kubeadm requires 1700 MiB of memory (ignored)');
});

test('version 1 of control groups is no warning where the kubelet is told to accept it', async () => {
  const setting = '    kubeletConfiguration: |\n      failCgroupV1: false\n';
  assert.not.match(await results({ cgroups: 'version 1\n' }, setting), /deprecated/);
});

test.run();
