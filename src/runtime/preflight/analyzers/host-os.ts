import { firstOutcome, AnalyzerProblem, type Analyzer } from '../analyzer.ts';
import { hostOs as collector, type HostOsFacts } from '../collectors/host-os.ts';
import { compareNumbers } from '../compare.ts';

type Numbers = readonly [number, number, number];

export const hostOs: Analyzer<HostOsFacts> = {
  kind: 'hostOS',
  collector,
  settings: {},
  title: () => 'Host OS Info',
  analyze: firstOutcome(holds),
};

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
  const [found = ''] = /^\d{1,15}(?:\.\d{1,15})?(?:\.\d{1,15})?/.exec(text) ?? [];
  if (found === '') throw new AnalyzerProblem(`${JSON.stringify(text)} is not a version`);
  const [major = 0, minor = 0, patch = 0] = found.split('.').map(Number);
  return [major, minor, patch];
}

function order(a: Numbers, b: Numbers): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}
