/** The distribution and kernel. Platforms have Troubleshoot's names: `redhat`, `oracle`, `amazon`, … */
import { hostname, release } from 'node:os';
import * as v from 'valibot';
import type { Read } from '../../../core/schema.ts';
import type { Check } from '../check.ts';
import { type Host, readHostFile } from '../host.ts';
import { AnalyzerProblem, compareNumbers, firstOutcome } from '../outcome.ts';

const schema = v.object({
  name: v.string(),
  kernelVersion: v.string(),
  platform: v.string(),
  platformFamily: v.string(),
  platformVersion: v.string(),
});
type HostOsFacts = Read<typeof schema>;

export const hostOs: Check<HostOsFacts> = {
  kind: 'hostOS',
  shared: true,
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
  facts: schema,
  title: 'Host OS Info',
  analyze: firstOutcome(holds),
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

type Numbers = readonly [number, number, number];

/**
 * `ubuntu = 22.04`, `rhel >= 8 && < 9`, `ubuntu == 20.04 || = 22.04`, `kernelVersion >= 5.10`,
 * `centos-8.2-kernel == 4.18`. The name is that of the platform or its family.
 */
function holds(when: string, facts: HostOsFacts): boolean {
  const words = when.split(' ');
  if (words.length < 3 || words.length % 3 !== 0) {
    throw new AnalyzerProblem(`the condition ${JSON.stringify(when)} does not have the form "ubuntu = 22.04"`);
  }
  const [name = ''] = words;
  // `&&` has higher precedence than `||`.
  const groups: { readonly sign: string; readonly version: Numbers }[][] = [[]];
  for (let at = 0; at < words.length; at += 3) {
    const [link = '', sign = '', version = ''] = words.slice(at, at + 3);
    if (at > 0 && link === '||') groups.push([]);
    else if (at > 0 && link !== '&&') throw new AnalyzerProblem(`${JSON.stringify(link)} is neither && nor ||`);
    groups.at(-1)?.push({ sign: checkedSign(sign), version: versionOf(version) });
  }
  const isIn = (version: Numbers): boolean =>
    groups.some((group) => group.every((one) => compareNumbers(one.sign, order(version, one.version), 0, true)));
  if (name === 'kernelVersion' && isIn(versionOf(facts.kernelVersion))) return true;
  const kernelOf = `${facts.platform}-${facts.platformVersion}-kernel`;
  if (/^[^-]*-[^-]*-kernel$/.test(name)) return name === kernelOf && isIn(versionOf(facts.kernelVersion));
  if (name !== facts.platform && name !== facts.platformFamily) return false;
  return isIn(versionOf(facts.platformVersion));
}

function checkedSign(sign: string): string {
  if (['=', '==', '!=', '<', '<=', '>', '>='].includes(sign)) return sign;
  throw new AnalyzerProblem(`${JSON.stringify(sign)} is not a comparison of versions`);
}

/** Up to three numbers at the start; the rest is ignored. */
function versionOf(text: string): Numbers {
  const [digits = ''] = /^\d{1,15}(?:\.\d{1,15})?(?:\.\d{1,15})?/.exec(text) ?? [];
  if (digits === '') throw new AnalyzerProblem(`${JSON.stringify(text)} is not a version`);
  const [major = 0, minor = 0, patch = 0] = digits.split('.').map(Number);
  return [major, minor, patch];
}

function order(a: Numbers, b: Numbers): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}
