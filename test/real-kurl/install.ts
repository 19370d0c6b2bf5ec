/** The same installation twice: by a bundle of curlew, and by kURL's own scripts. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BUILT_MAIN as main } from '../support/built.ts';
import { curlew } from '../support/curlew.ts';
import { errorsOf, KUBERNETES, type Packages } from './packaging.ts';
import { ADDRESS } from './played.ts';
import type { Visit } from './site.ts';

/** Add-ons of an installer spec with their settings, beside Kubernetes. */
export interface Wish {
  readonly addons: Readonly<Record<string, { readonly version: string; readonly [setting: string]: unknown }>>;
}

/** The same for both: what they leave below it is in objects, too. */
const INSTALL = '/var/lib/kurl';

function camel(name: string): string {
  return name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function specOf({ addons }: Wish): string {
  const spec = Object.fromEntries(Object.entries(addons).map(([name, settings]) => [camel(name), settings]));
  return `${JSON.stringify(
    {
      apiVersion: 'cluster.kurl.sh/v1beta1',
      kind: 'Installer',
      metadata: { name: 'real-kurl' },
      spec: {
        kubernetes: { version: KUBERNETES },
        ...spec,
        kurl: { airgap: true, hostPreflightIgnore: true, privateAddress: ADDRESS, publicAddress: ADDRESS },
      },
    },
    undefined,
    2,
  )}\n`;
}

/** Makes a bundle of the wish; a path, or why not. */
export async function bundleOf(
  { store }: Packages,
  wish: Wish,
  folder: string,
): Promise<{ readonly path: string; readonly failures: readonly string[] }> {
  const spec = join(folder, 'installer.yaml');
  await writeFile(spec, specOf(wish));
  const path = join(folder, 'bundle.tar.gz');
  const words = ['bundle', spec, '--from', store, '--os', 'ubuntu-22.04', '-o', path, '--force'];
  const { exitCode, stdout, stderr } = await curlew(words, { cwd: folder, main });
  return { path, failures: exitCode === 0 ? [] : errorsOf(stdout, stderr) };
}

/** Runs a script of the bundle on the node, unpacked as an operator does. `folder` gets the log. */
export async function installBundle(
  { node }: Visit,
  bundle: string,
  folder: string,
  words: string,
): Promise<readonly string[]> {
  await node.run(`rm -rf /srv/bundle && mkdir -p /srv/bundle && tar -xzf ${bundle} -C /srv/bundle`);
  const line = `cd /srv && /srv/bundle/${words} --install-dir ${INSTALL} --hook-timeout 4m`;
  const { exitCode, stdout, stderr } = await node.outcome(line);
  const log = `${stdout}\n${stderr}`;
  await writeFile(join(folder, `${words.replaceAll(/[^a-z]+/g, '-')}.log`), log);
  const journal = await node.outcome(`cat ${INSTALL}/runs/*/journal.jsonl; cat ${INSTALL}/runs/*/hook/*.log`);
  await writeFile(join(folder, 'journal.log'), journal.stdout);
  return exitCode === 0 ? [] : [failureIn(log)];
}

function failureIn(log: string): string {
  const lines = log.split('\n').filter((line) => line.trim() !== '');
  const at = lines.findIndex((line) => /^(?:✖ )?error\b|^error/i.test(line));
  return lines.slice(at < 0 ? -8 : at, at < 0 ? undefined : at + 8).join(' / ');
}

/**
 * What kURL's main does between kubeadm and the end for the add-ons of a spec, with its own functions. Not run are: what
 * installs the host (kubeadm, images, preflights) and what reports to its makers.
 */
const DRIVER = `#!/bin/bash
set -e
set -E
cd ${INSTALL}
MASTER=1
DIR=.
while read -r line; do eval "$line"; done < <(sed -n 's/^\\(\\.\\|source\\) \\($DIR\\/scripts\\/.*\\)/. \\2/p' scripts/install.sh)
K8S_DISTRO=kubeadm
AIRGAP=1
KURL_INSTALL_DIRECTORY=${INSTALL}
INSTALLER_YAML="$(cat installer.yaml)"
download_util_binaries
cp installer.yaml "$MERGED_YAML_SPEC"
parse_yaml_into_bash_variables
MASTER=1
export KUBECONFIG=/etc/kubernetes/admin.conf
is_ha
parse_kubernetes_target_version
discover full-cluster
# Its own way in: the scripts that a package brings.
kubeadm_addon_for_each addon_fetch
setup_kubeadm_kustomize
kubeadm_addon_for_each addon_pre_init
discover_pod_subnet
discover_service_subnet
configure_no_proxy
install_cri
kubeadm init --pod-network-cidr "$POD_CIDR"
kubectl get ns kurl >/dev/null 2>&1 || kubectl create ns kurl --save-config
if commandExists registry_init; then
    registry_init
    if [ -n "$CONTAINERD_VERSION" ]; then
        kubeadm_registry_containerd_configure "$DOCKER_REGISTRY_IP"
        kubeadm_containerd_restart
    fi
fi
kurl_init_config
kubeadm_addon_for_each addon_install
kubeadm_addon_for_each addon_post_init
addon_outro
`;

export interface Original {
  /** The repository, with kURL's scripts. */
  readonly root: string;
  /** Folder of its programs. */
  readonly bin: string | undefined;
}

/** The same by kURL's own scripts, over the same packages but for images, which are in a form that they do not know. */
export async function installOriginal(
  { node }: Visit,
  packages: Packages,
  { root, bin }: Original,
  wish: Wish,
  folder: string,
): Promise<readonly string[]> {
  const names = Object.entries(wish.addons).map(
    ([name, { version }]) => `${name}-${version.replaceAll('+', '-')}.tar.gz`,
  );
  const driver = join(folder, 'driver.sh');
  await writeFile(driver, DRIVER);
  const spec = join(folder, 'installer.yaml');
  await node.run(`mkdir -p ${INSTALL} && cd ${INSTALL} && cp -r "${root}/scripts" . ${bin === undefined ? '' : `&& cp -rL "${bin}" bin`}
    if [ -d scripts/kustomize ]; then cp -r scripts/kustomize .; fi
    if [ -d scripts/manifests ]; then cp -r scripts/manifests .; fi
    cp ${spec} installer.yaml
    for name in ${names.join(' ')}; do tar -xzf ${packages.out}/$name; done
    rm -rf addons/*/*/images`);
  const { exitCode, stdout, stderr } = await node.outcome(`timeout 600 bash ${driver} 2>&1`);
  const log = `${stdout}\n${stderr}`;
  await writeFile(join(folder, 'original.log'), log);
  return exitCode === 0 ? [] : [log.trim().split('\n').slice(-6).join(' / ')];
}
