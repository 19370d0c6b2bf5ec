/** What makes a page's machine one that meets the requirements of Kubernetes. */
import type { Machine } from './page-machine.ts';

/**
 * Gives it two processors, 16 GiB of memory, an address in a network, a synchronized
 * clock, and a disk on which a write takes a millisecond.
 */
export async function makeNode(machine: Machine): Promise<void> {
  await machine.run(`ip link add eth0 type veth peer name eth1
ip link set eth1 up
ip address add 10.0.0.2/24 dev eth0
ip link set eth0 up
awk -v RS= '{ print $0 "\\n"; sub(/: 0/, ": 1"); print; exit }' /proc/cpuinfo >/run/cpuinfo
sed 's/^MemTotal:.*/MemTotal: 16777216 kB/' /proc/meminfo >/run/meminfo
for name in cpuinfo meminfo; do mount --bind "/run/$name" "/proc/$name"; done
cat >/run/bin/timedatectl <<'END'
#!/bin/sh
printf 'Timezone=UTC\\nNTP=yes\\nNTPSynchronized=yes\\n'
END
cat >/run/bin/fio <<'END'
#!/bin/sh
echo '{"jobs":[{"jobname":"fsperf","sync":{"lat_ns":{"min":1,"max":9,"mean":5,"percentile":{"99.000000":1000000}}}}]}'
END
chmod +x /run/bin/timedatectl /run/bin/fio`);
}
