/** A spec that checks the host packages of an add-on that the operator installs. Pure. */
import { stringify } from 'yaml';
import type { AddonSpec } from './assemble.ts';

/** Lists of the collector for each directive of a Manifest (kurl.md 8.2). */
const LISTS: Readonly<Record<string, readonly string[]>> = {
  apt: ['ubuntu'],
  yum: ['centos', 'rhel', 'ol', 'amzn'],
  yum8: ['centos8', 'rhel8', 'ol8', 'centos9', 'rhel9', 'ol9'],
  yumol: ['ol'],
};

/** The spec for one add-on from the text of its Manifest; undefined if it needs no host packages. */
export function systemPackagesSpec(addon: string, manifest: string): AddonSpec | undefined {
  const lists = new Map<string, string[]>();
  for (const line of manifest.split('\n')) {
    const [directive = '', name = ''] = line.trim().split(/[ \t]+/);
    const own = Object.hasOwn(LISTS, directive) ? (LISTS[directive] ?? []) : [];
    if (name === '') continue;
    for (const list of own) lists.set(list, [...(lists.get(list) ?? []), name]);
  }
  if (lists.size === 0) return undefined;
  const collectorName = `${addon} packages`;
  const outcomes = [
    {
      fail: {
        when: '{{ not .IsInstalled }}',
        message: `Package {{ .Name }} is required by ${addon} and not installed`,
      },
    },
    { pass: { message: 'Package {{ .Name }} is installed' } },
  ];
  const spec = {
    apiVersion: 'troubleshoot.sh/v1beta2',
    kind: 'HostPreflight',
    metadata: { name: `${addon}-packages` },
    spec: {
      collectors: [{ systemPackages: { collectorName, ...Object.fromEntries(lists) } }],
      analyzers: [{ systemPackages: { checkName: collectorName, collectorName, outcomes } }],
    },
  };
  return {
    addon,
    file: `${addon}: system packages`,
    text: stringify(spec, { lineWidth: 0, aliasDuplicateObjects: false }),
  };
}
