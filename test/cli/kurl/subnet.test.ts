import { freeNetwork, parseNetwork, parseRoutes } from '../../../src/cli/kurl/subnet.ts';
import * as assert from '../../support/assert.ts';
import { kurlTool } from '../../support/kurl-tool.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cli/kurl/subnet');

async function call(...words: readonly string[]): Promise<string> {
  return kurlTool(['subnet', ...words]);
}

function free(range: string, size: number, taken: readonly string[]): string | undefined {
  const networks = taken.flatMap((one) => parseNetwork(one) ?? []);
  return freeNetwork(parseNetwork(range) ?? { first: 0, last: -1 }, size, networks);
}

test('the first network that meets nothing', () => {
  assert.is(free('10.32.0.0/16', 20, []), '10.32.0.0/20');
  assert.is(free('10.32.0.0/16', 20, ['10.32.3.0/24']), '10.32.16.0/20');
  assert.is(free('10.0.0.0/8', 22, ['10.0.0.0/16', '10.1.0.0/30', '172.16.0.0/12']), '10.1.4.0/22');
  assert.is(free('10.32.0.0/16', 16, ['10.32.255.255/32']), undefined);
  assert.is(free('10.0.0.0/8', 22, ['0.0.0.0/0']), undefined);
  assert.is(free('255.255.255.0/24', 24, ['255.255.255.255/32']), undefined);
  assert.is(free('10.1.2.0/24', 16, []), undefined);
});

test("the kernel's table of routes, without the default route", () => {
  const table = `Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000200A\t00000000\t0001\t0\t0\t0\t0000F0FF\t0\t0\t0
`;
  assert.equal(parseRoutes(table), [parseNetwork('10.32.0.0/12')]);
});

test('its words, and a network in its answer', async () => {
  const [only, none] = ['203.0.113.0/24', '203.0.113.0/25,203.0.113.128/25'];
  assert.is(
    await call('--subnet-alloc-range', only, '--cidr-range', '25', '--exclude-subnet', '203.0.113.0/26'),
    '203.0.113.128/25',
  );
  await assert.rejectsWith(
    call('--subnet-alloc-range', only, '--exclude-subnet', none, '--cidr-range=30'),
    'NOT_FOUND',
    /no free network/,
  );
  for (const words of [
    ['--cidr-range', '33'],
    ['--subnet-alloc-range', 'x'],
    ['--exclude-subnet', '1.2.3.400/8'],
  ]) {
    await assert.rejectsWith(call(...words), 'USAGE');
  }
});

test.run();
