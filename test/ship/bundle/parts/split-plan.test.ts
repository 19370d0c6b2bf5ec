import { planParts, type Medium } from '../../../../src/ship/bundle/parts/split-plan.ts';
import { formatBytes } from '../../../../src/core/units.ts';
import * as assert from '../../../support/assert.ts';
import { suite } from '../../../support/suite.ts';

const test = suite('ship/bundle/split-plan');

const MIB = 1 << 20;
/** What a medium keeps for the head file and its like. */
const ASIDE = 2 * MIB;

function medium(folder: string, free: number, more: Partial<Medium> = {}): Medium {
  return { folder, device: folder, type: 'ext4', free: free + ASIDE, block: 4096, fileLimit: undefined, ...more };
}

function placed(size: number, media: readonly Medium[], limit?: number): readonly (readonly [string, number])[] {
  return planParts({ name: 'b', size }, { media, limit }).map(({ folder, size: bytes }) => [folder, bytes]);
}

test('parts are as large as asked for, the last one is what is left', () => {
  const parts = planParts({ name: 'b.tar.gz', size: 2500 }, { media: [medium('/a', 1e9)], limit: 1000 });
  assert.equal(parts, [
    { name: 'b.tar.gz.part-001', folder: '/a', offset: 0, size: 1000 },
    { name: 'b.tar.gz.part-002', folder: '/a', offset: 1000, size: 1000 },
    { name: 'b.tar.gz.part-003', folder: '/a', offset: 2000, size: 500 },
  ]);
});

test('each medium is filled before the next is begun', () => {
  const media = [medium('/a', 5 * MIB), medium('/b', 8 * MIB), medium('/c', 8 * MIB)];
  assert.equal(placed(12 * MIB, media), [
    ['/a', 5 * MIB],
    ['/b', 7 * MIB],
  ]);
  assert.equal(placed(12 * MIB, media, 4 * MIB), [
    ['/a', 4 * MIB],
    ['/a', MIB],
    ['/b', 4 * MIB],
    ['/b', 3 * MIB],
  ]);
});

test('a file system that wants smaller files gets them', () => {
  const media = [medium('/a', 20 * MIB, { type: 'vfat', fileLimit: 6 * MIB }), medium('/b', 20 * MIB)];
  assert.equal(placed(30 * MIB, media, 10 * MIB), [
    ['/a', 6 * MIB],
    ['/a', 6 * MIB],
    ['/a', 6 * MIB],
    ['/a', 2 * MIB],
    ['/b', 10 * MIB],
  ]);
});

test('no part is small only because a medium is full', () => {
  assert.equal(placed(5 * MIB, [medium('/a', 3 * MIB + 4096), medium('/b', 9 * MIB)], 3 * MIB), [
    ['/a', 3 * MIB],
    ['/b', 2 * MIB],
  ]);
  assert.equal(placed(100, [medium('/a', 4096)]), [['/a', 100]]);
});

test('every file takes whole blocks', () => {
  const small = medium('/a', 3 * 65_536, { block: 65_536 });
  assert.equal(placed(3000, [small], 1000).length, 3);
  assert.throwsWith(() => placed(4000, [small], 1000), 'NO_SPACE', /needs 4 kB, 1 kB more than available: /);
});

test('folders of one file system share its room', () => {
  const media = [medium('/a', 3 * MIB, { device: '8:1' }), medium('/b', 3 * MIB, { device: '8:1' })];
  assert.throwsWith(() => placed(4 * MIB, media), 'NO_SPACE', /1\.05 MB more than available/);
});

test('a shortage is named, medium by medium', () => {
  const error = assert.throwsWith(() => placed(9 * MIB, [medium('/a', MIB), medium('/b', 2 * MIB)]), 'NO_SPACE');
  assert.match(error.message, `needs ${formatBytes(9 * MIB)}, ${formatBytes(6 * MIB)} more than available`);
  assert.match(error.message, `${formatBytes(MIB + ASIDE)} free in /a, ${formatBytes(2 * MIB + ASIDE)} free in /b`);
});

test('more parts than numbers are refused, with a size that would do', () => {
  const error = assert.throwsWith(() => placed(1000 * 10, [medium('/a', 1e9)], 10), 'USAGE', /more than 999 parts/);
  assert.match(error.hint ?? '', 'parts of at least 11 bytes');
});

test.run();
