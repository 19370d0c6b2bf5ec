import * as fc from 'fast-check';
import { digestOf } from '../../../src/core/digest.ts';
import { hookCall } from '../../../src/runtime/plan/hooks.ts';
import { planRun } from '../../../src/runtime/plan/plan.ts';
import { NO_RECORDS, settingsDigest, type Records } from '../../../src/runtime/plan/records.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import type { PackageFacts } from '../../../src/runtime/plan/run-plan.ts';

const test = suite('planRun');

const OPTIONS = { reapply: false, images: true, variables: [] };
const RUN = '20261121T101500Z-3f2a';

function facts(name: string, extra: Partial<PackageFacts> = {}): PackageFacts {
  return {
    ref: { tree: 'addons', name, version: '1.0' },
    digest: digestOf(name),
    requires: [],
    fulfills: [],
    images: [],
    hasInstallScript: true,
    settings: {},
    inPlace: undefined,
    remote: false,
    hookLimit: undefined,
    ...extra,
  };
}

/** Records of a node on which these packages were installed by a run that finished. */
function installed(packages: readonly PackageFacts[], finished = true): Records {
  return {
    ...NO_RECORDS,
    lastRun: RUN,
    extracted: packages.map(({ ref, digest }) => ({ ...ref, digest })),
    applied: Object.fromEntries(
      packages.map(({ ref, digest, settings }) => [
        ref.name,
        { version: ref.version, digest, settings: settingsDigest(settings), run: RUN, finished },
      ]),
    ),
  };
}

const IMAGE = { id: 'x', reference: 'docker.io/library/x:1', digest: digestOf('x'), platform: 'linux/amd64' };

test('the phases of an install come in their order, the container runtime before the rest', () => {
  const packages = [facts('zeta', { images: [IMAGE] }), facts('containerd'), facts('flannel')];
  assert.equal(
    planRun('install', packages, NO_RECORDS, OPTIONS).actions.map(({ id }) => id),
    [
      'extract containerd-1.0',
      'extract flannel-1.0',
      'extract zeta-1.0',
      'hook containerd_pre_init',
      'hook flannel_pre_init',
      'hook zeta_pre_init',
      'hook containerd_install',
      'images zeta',
      'hook flannel',
      'hook zeta',
      'hook containerd_post_init',
      'hook flannel_post_init',
      'hook zeta_post_init',
      'hook containerd_outro',
      'hook flannel_outro',
      'hook zeta_outro',
    ],
  );
});

test('an add-on may be called like something that every object has', () => {
  const { addons } = planRun('install', [facts('constructor')], NO_RECORDS, OPTIONS);
  assert.is(addons[0]?.because, 'it was not installed');
});

test('function names hold the folder name verbatim', () => {
  assert.is(hookCall('cert-manager', 'pre_init'), 'cert-manager_pre_init');
  assert.is(hookCall('cert-manager', 'install'), 'cert-manager');
  assert.is(hookCall('containerd', 'install'), 'containerd_install');
});

test('unknown add-ons follow in spec order, moved only by what they require', () => {
  const packages = [facts('bbb', { requires: ['aaa'] }), facts('ccc'), facts('aaa'), facts('velero')];
  const names = planRun('install', packages, NO_RECORDS, OPTIONS).addons.map(({ ref }) => ref.name);
  assert.equal(names, ['velero', 'aaa', 'bbb', 'ccc']);
});

test('add-ons that require each other are an error', () => {
  const packages = [facts('aaa', { requires: ['bbb'] }), facts('bbb', { requires: ['aaa'] })];
  assert.throwsWith(() => planRun('install', packages, NO_RECORDS, OPTIONS), 'SPEC_INVALID', /require each other/);
});

test('an add-on that stands there twice is an error', () => {
  assert.throwsWith(() => planRun('install', [facts('a'), facts('a')], NO_RECORDS, OPTIONS), 'SPEC_INVALID', /twice/);
});

test('what is applied already is not installed again, and nothing is extracted', () => {
  const one = facts('demo', { inPlace: digestOf('demo') });
  const { addons, actions } = planRun('install', [one], installed([one]), OPTIONS);
  assert.is(addons[0]?.mode, 'already applied');
  assert.equal(
    actions.map(({ id }) => id),
    ['hook demo_pre_init', 'hook demo_already_applied', 'hook demo_post_init', 'hook demo_outro'],
  );
});

const before = facts('demo', { inPlace: digestOf('demo') });
for (const [title, after, records, reapply, because] of [
  ['a first install', before, NO_RECORDS, false, 'it was not installed'],
  [
    'another version',
    facts('demo', { ref: { ...before.ref, version: '2.0' } }),
    installed([before]),
    false,
    'version 1.0 was installed',
  ],
  [
    'another package',
    facts('demo', { digest: digestOf('new') }),
    installed([before]),
    false,
    'another package of this version was installed',
  ],
  ['other settings', facts('demo', { settings: { a: 1 } }), installed([before]), false, 'its settings have changed'],
  ['a run that did not finish', before, installed([before], false), false, 'its last run did not finish'],
  ['--reapply', before, installed([before]), true, 'requested by --reapply'],
] as const) {
  test(`${title} is a reason to install`, () => {
    const [addon] = planRun('install', [after], records, { ...OPTIONS, reapply }).addons;
    assert.equal([addon?.mode, addon?.because], ['install', because]);
  });
}

test('the order of keys in the settings is no change', () => {
  const one = facts('demo', { settings: { a: 1, b: { c: 2, d: 3 } } });
  const same = facts('demo', { settings: { b: { d: 3, c: 2 }, a: 1 } });
  assert.is(planRun('install', [same], installed([one]), OPTIONS).addons[0]?.mode, 'already applied');
});

test('files that are no longer in place are extracted again', () => {
  const plan = planRun('install', [facts('demo')], installed([before]), OPTIONS);
  assert.is(plan.actions[0]?.id, 'extract demo-1.0');
});

test('a package without install.sh has no hooks', () => {
  const plan = planRun('install', [facts('kubernetes', { hasInstallScript: false })], NO_RECORDS, OPTIONS);
  assert.equal(
    plan.actions.map(({ kind }) => kind),
    ['extract'],
  );
});

test('whatever the spec: every add-on once, every action once, extraction before hooks, known add-ons in their order', () => {
  const name = fc.constantFrom('containerd', 'flannel', 'velero', 'rook', 'minio', 'aaa', 'bbb', 'ccc', 'ddd');
  fc.assert(
    fc.property(fc.uniqueArray(name), fc.boolean(), fc.func(fc.boolean()), (names, images, has) => {
      const packages = names.map((one) => facts(one, { images: has(one) ? [IMAGE] : [] }));
      const { addons, actions } = planRun('install', packages, NO_RECORDS, { ...OPTIONS, images });
      assert.equal(addons.map(({ ref }) => ref.name).toSorted(), names.toSorted());
      assert.is(new Set(actions.map(({ id }) => id)).size, actions.length);
      const kinds = actions.map(({ kind }) => kind);
      assert.ok(kinds.lastIndexOf('extract') < kinds.length && !kinds.slice(names.length).includes('extract'));
      const known: readonly string[] = ['containerd', 'flannel', 'rook', 'minio', 'velero'];
      assert.equal(
        addons.map(({ ref }) => ref.name).filter((one) => known.includes(one)),
        known.filter((one) => names.some((given) => given === one)),
      );
    }),
  );
});

test('kubernetes comes after all images, between what ekco and registry have to do', () => {
  const packages = [facts('ekco'), facts('registry'), facts('kubernetes', { images: [IMAGE] }), facts('containerd')];
  const variables = [['EKCO_ENABLE_INTERNAL_LOAD_BALANCER', '1']] as const;
  const ids = planRun('install', packages, NO_RECORDS, { ...OPTIONS, variables }).actions.map(({ id }) => id);
  assert.equal(
    ids.filter((id) => !/extract|pre_init|post_init|outro/.test(id)),
    [
      'hook containerd_install',
      'images kubernetes',
      'hook ekco_bootstrap_internal_lb',
      'hook kubernetes',
      'hook ekco_cleanup_bootstrap_internal_lb',
      'hook registry_init',
      'hook ekco',
      'hook registry',
    ],
  );
  const plain = planRun('install', packages, NO_RECORDS, OPTIONS).actions.map(({ id }) => id);
  assert.not(plain.some((id) => id.includes('internal_lb')));
  const again = planRun('install', packages, installed(packages), OPTIONS).actions.map(({ id }) => id);
  assert.not(again.includes('hook registry_init'));
});

test('another address of the load balancer is told to ekco, before and after kubernetes', () => {
  const packages = [facts('ekco'), facts('registry'), facts('kubernetes')];
  const told = (others: boolean): readonly string[] => {
    const loadBalancer = { before: '10.0.0.1:6443', now: 'lb.test', others };
    const { actions } = planRun('install', packages, NO_RECORDS, { ...OPTIONS, loadBalancer });
    const shown = actions.filter(({ id }) => /kubernetes$|_lb$|registry_init|address_change/.test(id));
    return shown.map((action) => [action.id, ...(action.kind === 'hook' ? (action.words ?? []) : [])].join(' '));
  };
  const change = 'hook ekco_handle_load_balancer_address_change';
  const first = `${change}_pre_init 10.0.0.1:6443 lb.test`;
  assert.equal(told(false), [first, 'hook kubernetes', 'hook registry_init']);
  const last = [`${change}_kubeconfigs`, `${change}_post_init 10.0.0.1:6443 lb.test`];
  assert.equal(told(true), [first, 'hook kubernetes', ...last, 'hook registry_init']);
});

test('kubernetes is installed when only ekco says that the load balancer is another', () => {
  const packages = [facts('ekco', { settings: { enableInternalLoadBalancer: true } }), facts('kubernetes')];
  const records = installed([facts('ekco'), facts('kubernetes')]);
  const loadBalancer = { before: '10.0.0.1:6443', now: 'localhost', others: false };
  const { addons, actions } = planRun('install', packages, records, { ...OPTIONS, loadBalancer });
  const because = new Map(addons.map((one) => [one.ref.name, `${one.mode}: ${one.because}`]));
  assert.is(because.get('ekco'), 'install: its settings have changed');
  assert.is(because.get('kubernetes'), 'install: the load balancer was 10.0.0.1:6443 and is localhost');
  assert.ok(actions.some(({ id }) => id === 'hook kubernetes'));
  const joining = planRun('join', packages, records, { ...OPTIONS, loadBalancer }).addons;
  assert.ok(joining.every((one) => one.because === 'every join'));
});

test('a node that joins gets its runtime, then images and join hooks by add-on, then kubernetes', () => {
  const packages = [facts('kubernetes'), facts('zeta', { images: [IMAGE] }), facts('containerd'), facts('registry')];
  const ids = (kind: 'join' | 'upgrade', given: Records): readonly string[] =>
    planRun(kind, packages, given, OPTIONS)
      .actions.map(({ id }) => id)
      .filter((id) => !id.startsWith('extract'));
  const expected = [
    'hook containerd_install',
    'hook kubernetes_pre_init',
    'hook containerd_join',
    'hook registry_join',
    'images zeta',
    'hook zeta_join',
    'hook kubernetes_join',
  ];
  assert.equal(ids('join', NO_RECORDS), expected);
  assert.equal(ids('upgrade', installed(packages)), [
    'hook containerd_already_applied',
    ...expected.slice(1, -1),
    'hook kubernetes_upgrade',
  ]);
  assert.equal(
    planRun('join', [facts('zeta')], NO_RECORDS, OPTIONS).actions.map(({ id }) => id),
    ['extract zeta-1.0', 'hook zeta_join'],
  );
});

test('what is elsewhere is fetched before anything is extracted, and only what is to be extracted', () => {
  const packages = [facts('aaa', { remote: true }), facts('bbb', { remote: true, inPlace: digestOf('bbb') })];
  const records = { ...installed(packages), applied: {} };
  const ids = planRun('install', packages, records, OPTIONS).actions.map(({ id }) => id);
  assert.equal(ids.slice(0, 3), ['fetch aaa-1.0', 'extract aaa-1.0', 'hook aaa_pre_init']);
});

test('a limit of hooks stands in the plan', () => {
  const { actions } = planRun('install', [facts('aaa', { hookLimit: 90 })], NO_RECORDS, OPTIONS);
  assert.equal(
    actions.flatMap((action) => (action.kind === 'hook' ? [action.limit] : [])),
    [90, 90, 90, 90],
  );
});

test.run();
