/** What makes a page's machine one that meets the requirements of Kubernetes. */
import type { Machine } from './page-machine.ts';

/** Gives it an address in a network, and a synchronized clock. */
export async function makeNode(machine: Machine): Promise<void> {
  await machine.run(`ip link add eth0 type veth peer name eth1
ip link set eth1 up
ip address add 10.0.0.2/24 dev eth0
ip link set eth0 up
cat >/run/bin/timedatectl <<'END'
#!/bin/sh
printf 'Timezone=UTC\\nNTP=yes\\nNTPSynchronized=yes\\n'
END
chmod +x /run/bin/timedatectl`);
}
