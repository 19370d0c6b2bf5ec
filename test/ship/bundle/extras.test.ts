import { chooseExtras, type ExtraOptions, type ResolvedExtra } from '../../../src/ship/bundle/extras.ts';
import { resolvePackages } from '../../../src/ship/bundle/resolve.ts';
import { formatBundleJson, parseBundleJson } from '../../../src/core/bundle.ts';
import { digestOf } from '../../../src/core/digest.ts';
import { parseInstaller } from '../../../src/spec/parse.ts';
import { makeCatalog } from '../../../src/ship/release/make-catalog.ts';
import * as assert from '../../support/assert.ts';
import { specOf } from '../../support/bundles.ts';
import { suite } from '../../support/suite.ts';

const test = suite('ship/bundle/beside');

const MACHINE = [
  'host openssl',
  'host fio',
  'host longhorn',
  'kubernetes-conformance 1.29.9',
  'common x',
  'kurl-bin-utils x',
];
/** Packages that have some. */
const IMAGES: ReadonlySet<string> = new Set(['ekco', 'curlew-utils']);
const ADDONS =
  'kubernetes 1.29.9,kubernetes 1.28.15,kubernetes 1.16.4,longhorn 1.3.1,sonobuoy 0.57.0,ekco 0.28.4'.split(',');

function catalogOf(rows: readonly string[]) {
  return makeCatalog(
    'r1',
    rows.map((row) => {
      const [name = '', version = ''] = row.split(' ');
      const tree = /^(host|kubernetes)/.test(name) ? ('packages' as const) : ('addons' as const);
      const images = IMAGES.has(name) ? [{ reference: row, digest: digestOf(row) }] : [];
      const entry = { digest: digestOf(row), sha256: digestOf(row), size: 1, unpacked: 2, images };
      return { name, version, arch: 'amd64' as const, tree, requires: [], fulfills: [], entry };
    }),
  );
}

function beside(
  addons: Readonly<Record<string, string>>,
  options: Partial<ExtraOptions> = {},
  rows: readonly string[] = [...ADDONS, ...MACHINE],
  forKurl = false,
): readonly ResolvedExtra[] {
  const { installer } = parseInstaller('i.yaml', specOf(addons));
  if (installer === undefined) throw new Error('the spec of the test is wrong');
  const catalog = catalogOf(rows);
  const packages = resolvePackages(installer, catalog, 'amd64');
  return chooseExtras(packages, { also: [], upgradeFrom: [], ...options }, { catalog, arch: 'amd64', forKurl });
}

const shown = (found: readonly ResolvedExtra[]): readonly string[] =>
  found.map(({ role, name, version }) => `${role} ${name}-${version}`);

test('the helper image comes along in its newest version, where a package has an image and curlew installs it', () => {
  const rows = [...ADDONS, 'curlew-utils 1.0.0', 'curlew-utils 1.10.0', 'curlew-utils 1.9.0'];
  assert.equal(shown(beside({ ekco: '0.28.4' }, {}, rows)), ['machine curlew-utils-1.10.0']);
  assert.equal(shown(beside({ longhorn: '1.3.1' }, {}, rows)), [], 'nothing has an image');
  assert.equal(shown(beside({ ekco: '0.28.4' })), [], 'the release has none');
  assert.equal(shown(beside({ ekco: '0.28.4' }, {}, rows, true)), [], "kURL's scripts bring their own");
});

test('case 27: host packages and conformance images come along where the release has them; the tool brings the rest', () => {
  assert.equal(shown(beside({ kubernetes: '1.29.9' })), ['machine host-openssl', 'machine host-fio']);
  assert.equal(shown(beside({ kubernetes: '1.29.9', longhorn: '1.3.1', sonobuoy: 'latest' })), [
    'machine host-openssl',
    'machine host-fio',
    'machine host-longhorn',
    'machine kubernetes-conformance-1.29.9',
  ]);
  assert.equal(shown(beside({ kubernetes: '1.16.4', sonobuoy: 'latest' })), [
    'machine host-openssl',
    'machine host-fio',
  ]);
  assert.equal(shown(beside({ kubernetes: '1.29.9', sonobuoy: 'latest' }, {}, ADDONS)), []);
  assert.equal(shown(beside({ ekco: 'latest' })), []);
});

test('steps of an upgrade and packages asked for come along, each once', () => {
  const found = beside(
    { kubernetes: '1.29.9' },
    {
      upgradeFrom: [{ name: 'kubernetes', version: '1.27.3' }],
      also: [
        { name: 'ekco', version: '0.28.x' },
        { name: 'kubernetes', version: '1.28.15' },
        { name: 'kubernetes', version: '1.29.9' },
      ],
    },
    ADDONS,
  );
  assert.equal(shown(found), ['step kubernetes-1.28.15', 'asked ekco-0.28.4']);
  assert.equal(
    found.map(({ because, key }) => [because, key]),
    [
      ['on the way from 1.27.3 to 1.29.9', 'r1/kubernetes-1.28.15.tar.gz'],
      ['greatest patch of 0.28', 'r1/ekco-0.28.4.tar.gz'],
    ],
  );
});

test('what is not there is refused with a near name', () => {
  const also = (name: string, version: string) => () => beside({ ekco: 'latest' }, { also: [{ name, version }] });
  assert.is(assert.throwsWith(also('longhorm', 'latest'), 'SPEC_INVALID').hint, 'did you mean longhorn?');
  assert.is(assert.throwsWith(also('longhorn', '1.3.2'), 'SPEC_INVALID').hint, 'did you mean 1.3.1?');
  const upgrade = () => beside({ ekco: 'latest' }, { upgradeFrom: [{ name: 'ekcoo', version: '1.0' }] });
  assert.is(assert.throwsWith(upgrade, 'SPEC_INVALID').hint, 'did you mean ekco?');
});

test('bundle.json keeps them apart from those of the spec, and is believed only when it is whole', () => {
  const [step] = beside({ kubernetes: '1.29.9' }, {}, [...ADDONS, 'host openssl']);
  if (step === undefined) throw new Error('nothing beside');
  const { because: _because, key: _key, toc: _toc, ...described } = step;
  const bundle = {
    format: 1,
    release: 'r1',
    arch: 'amd64',
    installer: digestOf(''),
    packages: [],
    beside: [described],
    tool: 'x',
  } as const;
  const text = formatBundleJson(bundle);
  assert.equal(parseBundleJson(text, 'b').beside, [described]);
  for (const [bad, message] of [
    [text.replace('"machine"', '"other"'), /beside\[0\]\.role: not "step"/],
    [text.replace('"version":"openssl"', '"version":"../x"'), /version/],
    [text.replace('"packages":[]', `"packages":[${JSON.stringify(described)}]`), /is listed twice/],
    [text.replace(/"beside":\[.*\],"format"/, '"beside":{},"format"'), /beside/],
  ] as const) {
    assert.throwsWith(() => parseBundleJson(bad, 'b'), 'PACKAGE_INVALID', message);
  }
});

test.run();
