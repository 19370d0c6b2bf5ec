import { digestOf } from '../../../src/core/digest.ts';
import { planPorts, portsNeeded } from '../../../src/runtime/plan/ports.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('runtime/plan-ports');

function plan(...names: readonly string[]): Parameters<typeof portsNeeded>[0] {
  const digest = digestOf('');
  return {
    addons: names.map((name) => ({
      ref: { tree: 'addons' as const, name, version: '1' },
      digest,
      settings: digest,
      mode: 'install' as const,
      because: '',
      hasInstallScript: true,
    })),
  };
}

test('kubernetes needs its known ports, an add-on of any other name none', () => {
  const ports = portsNeeded(plan('kubernetes', 'constructor')).map(({ port }) => port);
  assert.equal(ports, [2379, 2380, 2381, 6443, 10_248, 10_250, 10_257, 10_259]);
});

test('an add-on that is removed needs no port: its own programs still have them', () => {
  const { addons } = plan('kubernetes');
  for (const mode of ['remove', 'leave'] as const)
    assert.equal(portsNeeded({ addons: addons.map((one) => ({ ...one, mode })) }), []);
});

const inUse = [{ protocol: 'tcp' as const, port: 6443, process: 'nginx' }];

test('a port that somebody has is a conflict, and the program is named', () => {
  const planned = planPorts(portsNeeded(plan('kubernetes')), inUse, { applied: {} });
  assert.equal(
    planned.filter(({ state }) => state === 'in use').map(({ port, process, conflict }) => [port, process, conflict]),
    [[6443, 'nginx', true]],
  );
});

test('what is installed already may have its ports itself', () => {
  const digest = digestOf('');
  const record = { version: '1', digest, settings: digest, run: '20261121T101500Z-3f2a', finished: false };
  const planned = planPorts(portsNeeded(plan('kubernetes')), inUse, { applied: { kubernetes: record } });
  assert.ok(planned.every(({ conflict }) => !conflict));
});

test.run();
