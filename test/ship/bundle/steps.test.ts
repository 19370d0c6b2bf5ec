import { upgradeSteps } from '../../../src/ship/bundle/steps.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('ship/bundle/steps');

const AVAILABLE: Readonly<Record<string, readonly string[]>> = {
  kubernetes: ['1.30.1', '1.29.9', '1.29.10', '1.28.2', '1.28.15', '1.27.16', '1.24.17'],
  rook: '1.0.4-14.2.21 1.4.3 1.4.9 1.5.9 1.5.12 1.6.11 1.7.11 1.8.10 1.9.12 1.10.11 1.11.2'.split(' '),
  rookupgrade: ['10to14'],
  containerd: '1.2.13 1.3.9 1.4.13 1.5.11 1.6.33 1.7.29 2.0.5 2.1.5 2.2.6'.split(' '),
};

function steps(name: string, from: string, to: string): string {
  const found = upgradeSteps({ name, from, to }, (one) => AVAILABLE[one] ?? []);
  return found.map((step) => (step.name === name ? step.version : `${step.name}-${step.version}`)).join(' ');
}

for (const [name, from, to, expected] of [
  // Without the minor of where it stands, and without the version of the spec, which is in the bundle anyway (case 11).
  ['kubernetes', '1.27.3', '1.30.1', '1.28.15 1.29.10'],
  ['kubernetes', '1.27', '1.29.9', '1.28.15'],
  ['kubernetes', '1.29.9', '1.30.1', ''],
  ['kubernetes', '1.30.0', '1.30.1', ''],
  // From the newest patch of where it stands (cases 12 and 13).
  ['rook', '1.6.11', '1.6.11', ''],
  ['rook', '1.6.0', '1.9.12', '1.6.11 1.7.11 1.8.10'],
  ['rook', '1.9.3', '1.10.11', ''],
  ['rook', '1.9.12', '1.11.2', '1.9.12 1.10.11'],
  ['rook', '1.5.9', '1.6.11', ''],
  ['rook', '1.0.4', '1.4.9', 'rookupgrade-10to14'],
  ['rook', '1.0.4-14.2.21', '1.4.9', 'rookupgrade-10to14'],
  ['rook', '1.3.11', '1.4.9', 'rookupgrade-10to14'],
  ['rook', '1.0.4', '1.4.3', ''],
  ['rook', '1.0.4', '1.7.11', 'rookupgrade-10to14 1.4.9 1.5.12 1.6.11'],
  // Case 16.
  ['containerd', '1.7.29', '2.0.5', ''],
  ['containerd', '1.5.11', '1.7.29', '1.6.33'],
  ['containerd', '1.6.33', '1.7.29', ''],
  ['containerd', '2.0.5', '2.2.6', '2.1.5'],
  ['openebs', '1.0.0', '3.9.0', ''],
] as const) {
  test(`${name} ${from} to ${to}: ${expected === '' ? 'no steps' : expected}`, () => {
    assert.is(steps(name, from, to), expected);
  });
}

for (const [name, from, to, message] of [
  ['kubernetes', '1.24.17', '1.28.2', /version 1\.25 is missing on the way from 1\.24\.17 to 1\.28\.2/],
  ['kubernetes', '1.30.1', '1.29.9', /downgrade/],
  ['kubernetes', '1.27.3', '2.0.0', /major/],
  ['kubernetes', 'v5', '1.30.1', /no major and minor/],
  ['rook', '1.9.0', '1.15.0', /version 1\.12 is missing/],
  ['containerd', '1.6.33', '2.0.5', /only 1\.7 can be upgraded to 2/],
  ['containerd', '2.0.5', '1.7.29', /downgrade/],
  ['containerd', '1.6.33', '1.9.0', /at most two minor/],
] as const) {
  test(`${name} ${from} to ${to} is refused`, () => {
    assert.throwsWith(() => steps(name, from, to), 'SPEC_INVALID', message);
  });
}

test('without its own package rook does not get from 1.0 to 1.4', () => {
  const without = (): unknown => upgradeSteps({ name: 'rook', from: '1.0.4', to: '1.5.12' }, () => ['1.4.9', '1.5.12']);
  assert.throwsWith(without, 'SPEC_INVALID', /rookupgrade-10to14/);
});

test.run();
