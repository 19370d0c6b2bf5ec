/** The distribution and kernel. Platforms have Troubleshoot's names: `redhat`, `oracle`, `amazon`, … */
import { hostname, release } from 'node:os';
import * as v from 'valibot';
import type { Read } from '../../../core/schema.ts';
import { DEFAULT_LIMIT_MS, type Collector, type Host } from '../collector.ts';
import { readHostFile } from '../host-files.ts';

const facts = v.object({
  name: v.string(),
  kernelVersion: v.string(),
  platform: v.string(),
  platformFamily: v.string(),
  platformVersion: v.string(),
});
export type HostOsFacts = Read<typeof facts>;

export const hostOs: Collector<HostOsFacts> = {
  kind: 'hostOS',
  defaultName: 'hostOS',
  shared: true,
  settings: {},
  limitMs: () => DEFAULT_LIMIT_MS,
  collect: async (_, host) => {
    const { id, version } = await readOsRelease(host);
    const platform = PLATFORMS[id] ?? id;
    return {
      name: hostname(),
      kernelVersion: release(),
      platform,
      platformFamily: FAMILIES.find(([, names]) => names.includes(platform))?.[0] ?? '',
      platformVersion: (await exactVersion(host, platform)) ?? version,
    };
  },
  facts,
};

/** By `ID` of os-release(5); other platforms use their ID. */
const PLATFORMS: Readonly<Record<string, string>> = { rhel: 'redhat', ol: 'oracle', amzn: 'amazon' };

const FAMILIES: readonly (readonly [family: string, platforms: readonly string[]])[] = [
  ['debian', ['debian', 'ubuntu', 'linuxmint', 'raspbian']],
  ['fedora', ['fedora']],
  ['rhel', ['oracle', 'centos', 'redhat', 'scientific', 'amazon', 'cloudlinux', 'rocky', 'almalinux']],
  ['suse', ['suse', 'opensuse', 'opensuse-leap', 'opensuse-tumbleweed', 'sles', 'sled']],
  ['arch', ['arch']],
  ['alpine', ['alpine']],
];

/** `ID` and `VERSION_ID` of os-release(5); empty if they are missing. */
export async function readOsRelease(host: Host): Promise<{ readonly id: string; readonly version: string }> {
  const text =
    (await readHostFile(host, 'etc/os-release', 65_536)) ?? (await readHostFile(host, 'usr/lib/os-release', 65_536));
  const value = (name: string): string => {
    const [, raw = ''] = new RegExp(`^${name}=(.*)$`, 'm').exec(text ?? '') ?? [];
    return raw.trim().replace(/^(["'])(.*)\1$/, '$2');
  };
  return { id: value('ID'), version: value('VERSION_ID') };
}

/** The version from files that are more exact than os-release, which has only the major version on some distributions. */
async function exactVersion(host: Host, platform: string): Promise<string | undefined> {
  if (platform === 'debian') return (await readHostFile(host, 'etc/debian_version', 4096))?.split('\n')[0]?.trim();
  if (platform === 'ubuntu') return undefined;
  for (const file of ['oracle-release', 'redhat-release', 'system-release']) {
    const text = await readHostFile(host, `etc/${file}`, 4096);
    const [, version] = /release (\w[\d.]*)/i.exec(text ?? '') ?? [];
    if (version !== undefined) return version.toLowerCase();
  }
  return undefined;
}
