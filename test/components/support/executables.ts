/** Executables for nodes as the build made them, and a sample bundle of each architecture. */
import { execa } from 'execa';
import { mkdir } from 'node:fs/promises';
import { ARCHES, type Arch } from '../../../src/core/ref.ts';
import { BUILT_MAIN as main } from '../../support/built.ts';
import { curlewOk, type Outcome } from '../../support/curlew.ts';
import { tree, type Tree } from '../../support/tree.ts';
import { run } from './programs.ts';

export const OWN: Arch = process.arch === 'arm64' ? 'arm64' : 'amd64';

const ADDON = {
  'addons/web/1.0.0/Manifest': 'asset words ./words\n',
  // Large enough to be deflated by a worker thread.
  'addons/web/1.0.0/words': 'many words '.repeat(400_000),
  'addons/web/1.0.0/install.sh': `web_pre_init() { WEB_SEEN="port \${WEB_PORT}"; }
web() { printf '%s\\n' "$WEB_SEEN" >"$DIR/kustomize/web/seen"; }
web_already_applied() { test -f "$DIR/kustomize/web/seen"; }
web_outro() { logSuccess "done: $WEB_SEEN"; }
`,
  'installer.yaml': `apiVersion: cluster.kurl.sh/v1beta1
kind: Installer
metadata:
  name: sample
spec:
  web:
    version: latest
    port: 8080
`,
};

/** Folder of the sample. */
export interface Sample extends Tree {
  readonly bundle: (arch: Arch) => string;
  /** Unpacks a bundle with tar into a folder of the sample; returns its path. */
  readonly unpack: (folder: string, arch?: Arch) => Promise<string>;
}

/** Builds the sample's package, a store `store-<arch>` and a bundle for each architecture. */
export async function makeSample(): Promise<Sample> {
  const box = await tree(ADDON);
  const bundle = (arch: Arch): string => box.at(`${arch}.tar.gz`);
  for (const arch of ARCHES) {
    const words = ['web', '--arch', arch, '--out', 'out'];
    await curlewOk(['build', ...words], { cwd: box.path, main });
    await curlewOk(['publish', ...words, '--to', `store-${arch}`, '--release', 'v1'], { cwd: box.path, main });
    const spec = ['installer.yaml', '--from', `store-${arch}`, '--arch', arch, '-o', bundle(arch)];
    await curlewOk(['bundle', ...spec], { cwd: box.path, main });
  }
  return {
    ...box,
    bundle,
    unpack: async (folder, arch = OWN) => {
      await mkdir(box.at(folder));
      await run('tar', ['-xzf', bundle(arch), '-C', box.at(folder)]);
      return box.at(folder);
    },
  };
}

/** Runs a program with nothing but the system's own programs around it. */
export async function outcome(words: readonly string[], cwd: string, env = {}): Promise<Outcome> {
  const [command = '', ...args] = words;
  const options = { cwd, env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: cwd, ...env }, extendEnv: false } as const;
  const { exitCode, stdout, stderr } = await execa(command, args, { ...options, reject: false, stdin: 'ignore' });
  return { exitCode: exitCode ?? 255, stdout, stderr };
}

export async function succeeds(words: readonly string[], cwd: string, env = {}): Promise<string> {
  const { exitCode, stdout, stderr } = await outcome(words, cwd, env);
  if (exitCode !== 0) throw new Error(`${words.join(' ')}: status ${exitCode}\n${stdout}\n${stderr}`);
  return stdout;
}
