/** A spec that asks for the host packages of an add-on, when the operator installs them himself. Pure. */
import { stringify } from 'yaml';
import type { AddonSpec } from './assemble.ts';

/** Which lists of the collector a directive of a Manifest fills (kurl.md 8.2). */
const LISTS: Readonly<Record<string, readonly string[]>> = {
  apt: ['ubuntu'],
  yum: ['centos', 'rhel', 'ol', 'amzn'],
  yum8: ['centos8', 'rhel8', 'ol8', 'centos9', 'rhel9', 'ol9'],
  yumol: ['ol'],
};

/** The spec for one add-on by the text of its Manifest; undefined when it wants no package. */
export function systemPackagesSpec(addon: string, manifest: string): AddonSpec | undefined {
  const lists = new Map<string, string[]>();
  for (const line of manifest.split('\n')) {
    const [directive = '', name = ''] = line.trim().split(/[ \t]+/);
    const wanted = Object.hasOwn(LISTS, directive) ? (LISTS[directive] ?? []) : [];
    if (name === '') continue;
    for (const list of wanted) lists.set(list, [...(lists.get(list) ?? []), name]);
  }
  if (lists.size === 0) return undefined;
  const collectorName = `${addon} packages`;
  const outcomes = [
    {
      fail: { when: '{{ not .IsInstalled }}', message: `Package {{ .Name }} is needed by ${addon} and not installed` },
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
