/** An API server with what plays its controllers, and a node of its own for each installation. */
import { mkdir, rm } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { startApiServer } from '../components/support/api-server.ts';
import { createOpened } from '../components/support/opened.ts';
import { startNode, type KurlNode } from '../components/support/kurl-node.ts';
import { openKube, type Kube, type KubeObject } from './kube.ts';
import { play } from './play.ts';
import { ADDRESS, isPlayed } from './played.ts';

export interface Site extends AsyncDisposable {
  /** A fresh node before an empty cluster; the cluster is emptied again when it goes. */
  readonly enter: () => Promise<Visit>;
}

export interface Visit extends AsyncDisposable {
  readonly node: KurlNode;
  /** Another node, for what joins. */
  readonly another: (name: string) => Promise<KurlNode>;
  /** What has come into the cluster since the node was there, without what is only played. */
  readonly objects: () => Promise<ReadonlyMap<string, KubeObject>>;
  /** The address of the API server, which objects may hold. */
  readonly url: string;
}

/** What kURL's configuration of kubeadm adds. */
const OPTIONS = ['--service-node-port-range', '80-60000', '--allow-privileged=true'];

/** Services of a hook or a host package are assumed to run: something sleeps instead of them. */
const SYSTEMCTL = `#!/bin/bash
unit="\${!#}" unit="\${unit%.service}"
case " collectd iscsid open-iscsi nfs-common rpcbind docker kubelet " in
  *" $unit "*) known=1 ;;
  *) for file in /etc/systemd/system/"$unit".* /lib/systemd/system/"$unit".*; do [ ! -e "$file" ] || known=1; done ;;
esac
if [ -n "\${known-}" ] && [ ! -e "/etc/units/$unit" ]; then echo 'sleep infinity' >"/etc/units/$unit"; fi
exec /usr/local/lib/systemctl "\${@:1:$#-1}" "$unit"
`;

/**
 * A machine as kURL finds one: it knows its own name, its kernel has what is asked for, and a containerd runs (specs without
 * it are for those).
 */
const MACHINE = `echo "${ADDRESS} $(hostname)" >>/etc/hosts
for name in modprobe lsmod; do
  command -v "$name" >/dev/null || { printf '#!/bin/sh\\nexit 0\\n' >"/usr/local/bin/$name"; chmod +x "/usr/local/bin/$name"; }
done
mv /usr/local/bin/systemctl /usr/local/lib/systemctl
cat >/usr/local/bin/systemctl <<'END'
${SYSTEMCTL}END
chmod +x /usr/local/bin/systemctl
systemctl start containerd`;

export async function openSite(folder: string): Promise<Site> {
  // Nothing counts of an earlier run in the same place.
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const opened = createOpened();
  try {
    const api = opened.keep(await startApiServer(folder, { options: OPTIONS }));
    const kube = opened.keep(await openKube(api.kubeconfig));
    // Roles and the like are made while it starts.
    while (
      !(await kube.get('/readyz').then(
        () => true,
        () => false,
      ))
    )
      await pause(200);
    const before = await kube.all();
    return {
      enter: async () => visit(api.kubeconfig, api.url, kube, before),
      [Symbol.asyncDispose]: opened.close,
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function visit(
  kubeconfig: string,
  url: string,
  kube: Kube,
  before: ReadonlyMap<string, KubeObject>,
): Promise<Visit> {
  const opened = createOpened();
  const start = async (name: string): Promise<KurlNode> => {
    const made = opened.keep(await startNode({ name, containerd: undefined, kubeconfig }));
    await made.run(MACHINE);
    return made;
  };
  try {
    // A cluster that is emptied while something plays in it does not stay empty.
    opened.keep({ [Symbol.asyncDispose]: async () => kube.clear(before) });
    opened.keep(await play(kube));
    const node = await start('node-1');
    return {
      node,
      another: start,
      url,
      objects: async () =>
        new Map([...(await kube.all())].filter(([name, one]) => !before.has(name) && !isPlayed(one))),
      [Symbol.asyncDispose]: opened.close,
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}
