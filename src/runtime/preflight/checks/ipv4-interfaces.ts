/** Network interfaces that are up and have an IPv4 address, without loopback. */
import { networkInterfaces } from 'node:os';
import * as v from 'valibot';
import type { Read } from '../../../core/schema.ts';
import type { Check } from '../check.ts';
import { CollectProblem } from '../host.ts';
import { AnalyzerProblem, compareNumbers, firstOutcome, splitCondition, wholeNumber } from '../outcome.ts';

const row = v.object({ name: v.string(), address: v.string() });
type Ipv4Interface = Read<typeof row>;

export const ipv4Interfaces: Check<readonly Ipv4Interface[]> = {
  kind: 'ipv4Interfaces',
  shared: true,
  collect: async () =>
    Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) => {
      const ipv4 = addresses.find(({ family, internal }) => family === 'IPv4' && !internal);
      return ipv4 === undefined ? [] : [{ name, address: ipv4.address }];
    }),
  facts: v.array(row),
  title: 'IPv4 Interfaces',
  analyze: firstOutcome((when, interfaces) => {
    const [subject = '', sign = '', wanted = ''] = splitCondition(when, 3, 'count >= 1');
    if (subject !== 'count') throw new AnalyzerProblem(`${JSON.stringify(subject)} is not count`);
    return compareNumbers(sign, interfaces.length, wholeNumber(wanted));
  }),
};

/** The first IPv4 address of an interface, by default of the machine. */
export function localIpv4(name: string | undefined): string {
  for (const [one, addresses = []] of Object.entries(networkInterfaces())) {
    const ipv4 = addresses.find(({ family, internal }) => family === 'IPv4' && (name !== undefined || !internal));
    if (ipv4 !== undefined && (name === undefined || one === name)) return ipv4.address;
  }
  throw new CollectProblem(
    name === undefined
      ? 'no network interface has an IPv4 address'
      : `no interface ${name} with an IPv4 address exists`,
  );
}
