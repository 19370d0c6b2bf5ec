import * as fc from 'fast-check';
import { digestOf } from '../../../src/core/digest.ts';
import {
  diskSteps,
  type PackageRoom,
  type MountFacts,
  planDisk,
  requireRoom,
  sizeOnDisk,
  type DiskStep,
} from '../../../src/runtime/plan/disk.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('runtime/plan-disk');

function mount(free: number, total = 1000, paths: readonly string[] = ['/x'], inodes?: number): MountFacts {
  const limited = inodes === undefined ? undefined : { total: inodes, free: inodes };
  return { device: paths.join(), mountPoint: paths[0] ?? '', paths, total, free, inodes: limited };
}

function step(bytes: number, more: Partial<DiskStep> = {}): DiskStep {
  return { path: '/x', use: 'package', addon: 'a', bytes, files: 1, because: 'extracted', ...more };
}

test('the peak is the highest sum on the way, not the sum at the end', () => {
  const steps = [
    step(100, { use: 'fetched package' }),
    step(300),
    step(-100, { use: 'fetched package', files: -1 }),
    step(50, { addon: 'b' }),
  ];
  const [plan] = planDisk(steps, [mount(1000)]).mounts;
  assert.is(plan?.peak, 400);
  assert.equal(
    plan?.needs.map(({ use, bytes }) => [use, bytes]),
    [
      ['package', 300],
      ['fetched package', 100],
    ],
  );
});

test('15 % of the disk stay free where images are put, and only there', () => {
  const images = step(100, { path: '/images', use: 'images', files: 0 });
  const mounts = [mount(100), mount(249, 1000, ['/images'])];
  const plan = planDisk([step(100), images], mounts);
  assert.equal(
    plan.mounts.map(({ reserve, short }) => [reserve, short]),
    [
      [0, 0],
      [150, 1],
    ],
  );
  assert.not(plan.fits);
  assert.ok(planDisk([step(100), images], [mount(100), mount(250, 1000, ['/images'])]).fits);
});

test('a disk of images that is too small has nothing to do with the install folder', () => {
  const images = step(100, { path: '/images', use: 'images', files: 0 });
  const plan = planDisk([step(100), images], [mount(100), mount(249, 1000, ['/images'])]);
  const { hint } = assert.throwsWith(
    () => requireRoom(plan, '--install-dir'),
    'NO_SPACE',
    /^\/images: 1 MB more needed/m,
  );
  assert.is(hint, 'free that much there, such as by removing unused images; --dry-run shows the details');
});

test('a full disk on which nothing is to be put is none of the run’s business', () => {
  const none = step(0, { path: '/images', use: 'images', files: 0 });
  assert.ok(planDisk([none], [mount(0, 1000, ['/images'], 0)]).fits);
});

test('packages and images on one file system are added up', () => {
  const steps = [step(400), step(400, { path: '/images', use: 'images' })];
  const plan = planDisk(steps, [mount(900, 1000, ['/x', '/images'])]);
  assert.equal([plan.mounts[0]?.peak, plan.mounts[0]?.short], [800, 50]);
});

test('too few inodes are too little room', () => {
  const plan = planDisk([step(1, { files: 11 })], [mount(1000, 1000, ['/x'], 10)]);
  assert.equal(plan.mounts[0]?.inodes, { peak: 11, free: 10, short: 1 });
  const error = assert.throwsWith(() => requireRoom(plan, '--install-dir'), 'NO_SPACE', /\/x: 1 more inodes needed/);
  assert.is(error.hint, 'free that much, or use another folder with --install-dir; --dry-run shows the details');
});

test('the hint for a trial, which dev may run, names no --dry-run', () => {
  const plan = planDisk([step(1)], [mount(0)]);
  const { hint } = assert.throwsWith(() => requireRoom(plan, '--root'), 'NO_SPACE');
  assert.is(hint, 'free that much, or use another folder with --root');
});

test('what is lacking is told for every file system, with what has to stay free', () => {
  const GB = 1e9;
  const steps = [step(3 * GB), step(7 * GB, { path: '/images', use: 'images' })];
  const plan = planDisk(steps, [mount(GB, 10 * GB), mount(8 * GB, 20 * GB, ['/images'])]);
  const error = assert.throwsWith(() => requireRoom(plan, '--root'), 'NO_SPACE', /nothing was changed/);
  assert.match(error.message, '/x: 2000 MB more needed: the run needs 3000 MB; 1000 MB are free');
  assert.match(error.message, '/images: 2000 MB more needed: the run needs 7000 MB, and 3000 MB (15% of 20000 MB)');
});

test('a plan fits exactly when every prefix of its steps does', () => {
  const sizes = fc.array(fc.integer({ min: -50, max: 100 }), { maxLength: 20 });
  fc.assert(
    fc.property(sizes, fc.nat(500), (bytes, free) => {
      const { fits } = planDisk(
        bytes.map((one) => step(one)),
        [mount(free)],
      );
      let sum = 0;
      const tooMuch = bytes.some((one) => (sum += one) > free);
      assert.is(fits, !tooMuch);
    }),
  );
});

test('files take whole blocks, and so do their folders', () => {
  assert.equal(
    sizeOnDisk([
      { path: 'a/b/c', size: 1 },
      { path: 'a/d', size: 4097 },
      { path: 'e', size: 0 },
    ]),
    {
      bytes: 4096 + 8192 + 3 * 4096,
      files: 6,
    },
  );
});

function room(addon: string, more: Partial<PackageRoom> = {}): PackageRoom {
  const file = (path: string): PackageRoom['files'][number] => ({
    path,
    mode: 0o644,
    size: 8192,
    digest: digestOf(path.slice(0, 1)),
  });
  const files = [file('a'), file('ab'), file('c')];
  return { addon, files, imageFormat: 'oci', fetched: 0, moved: false, ...more };
}

const ACTIONS = [
  { id: 'extract a', kind: 'extract', addon: 'a', because: '' },
  { id: 'images a', kind: 'images', addon: 'a', because: '' },
] as const;

test('a package that is extracted takes its files, one that is moved only those with many names', () => {
  const places = { directory: '/x', leftOvers: 0, images: undefined };
  const [copied] = diskSteps({ actions: ACTIONS }, [room('a')], places);
  assert.equal([copied?.path, copied?.bytes, copied?.files], ['/x', 3 * 8192 + 4096, 4]);
  const [moved] = diskSteps({ actions: ACTIONS }, [room('a', { moved: true })], places);
  assert.is(moved?.bytes, 2 * 8192 + 4096);
});

test('a package that is fetched takes room twice until it is extracted, then gives it back', () => {
  const fetch = { id: 'fetch a', kind: 'fetch', addon: 'a', because: '' } as const;
  const places = { directory: '/x', leftOvers: 5000, images: undefined };
  const steps = diskSteps({ actions: [fetch, ...ACTIONS] }, [room('a', { fetched: 9000 })], places);
  assert.equal(
    steps.map(({ use, bytes }) => [use, bytes]),
    [
      ['left-overs', -5000],
      ['fetched package', 9000],
      ['package', 3 * 8192 + 4096],
      ['fetched package', -9000],
    ],
  );
  assert.is(planDisk(steps, [mount(1e6)]).mounts[0]?.peak, 4000 + 3 * 8192 + 4096);
});

test('images are counted by what is missing of them, where the runtime keeps them', () => {
  const images = { root: '/images', missing: new Map([['a', 1000]]) };
  const [, found] = diskSteps({ actions: ACTIONS }, [room('a')], { directory: '/x', leftOvers: 0, images });
  assert.equal([found?.path, found?.bytes], ['/images', 3500]);
  const none = diskSteps({ actions: ACTIONS }, [room('a')], {
    directory: '/x',
    leftOvers: 0,
    images: { ...images, missing: new Map() },
  });
  assert.is(none.length, 1);
});

test.run();
