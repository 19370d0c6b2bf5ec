import * as assert from '../support/assert.ts';
import { readConfig, xdgFolder, type Config } from '../../src/steps/open/config.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/config');

const NOTHING: Config = {
  registryMirrors: [],
  allowHttp: [],
  trustRealms: [],
  anyPlatform: [],
  builders: {},
  repositories: {},
  s3: {},
  trustedKeys: [],
  imageRegistries: [],
  providers: [],
};

/** A configuration with one repository for an operating system. */
function repository(os: string, more: object): string {
  return JSON.stringify({ repositories: { [os]: [{ id: 'own', url: 'https://me:hush@packages.example/', ...more }] } });
}

for (const [title, text, message] of [
  ['no JSON', '{"registryMirrors": {"a.example": [hush', /not JSON/],
  ['no object', '[]', /not an object/],
  ['an unknown key', '{"registryMirror": {}}', /registryMirror: unknown key; did you mean "registryMirrors"\?/],
  ['mirrors that are a list', '{"registryMirrors": []}', /registryMirrors: not an object/],
  [
    'a mirror that is a number',
    '{"registryMirrors": {"a.example": 7}}',
    /registryMirrors\["a\.example"\]: not a list of hosts/,
  ],
  [
    'a list of mirrors with a number',
    '{"registryMirrors": {"a.example": [7]}}',
    /\["a\.example"\]: not a list of hosts/,
  ],
  [
    'a mirror of no known scheme',
    '{"registryMirrors": {"a.example": "ftp://b.example"}}',
    /registryMirrors: not a mirror: .*ftp:/,
  ],
  ['a mirror with an impossible port', '{"registryMirrors": {"a.example": "me:hush@b:99999"}}', /"a\.example=b:99999"/],
  ['a mirror of no registry', '{"registryMirrors": {"": "b.example"}}', /not a mirror/],
  ['hosts for plain http that are a text', '{"allowHttp": "a"}', /allowHttp: not a list/],
  ['trusted hosts that are an object', '{"trustRealms": {}}', /trustRealms: not a list/],
  ['a certificate file that is a number', '{"caFile": 1}', /caFile: not a string/],
  ['keys that are a text', '{"trustedKeys": "a.pub"}', /trustedKeys: not a list/],
  ['a network that is a number', '{"containerNetwork": 1}', /containerNetwork: not a string/],
  ['settings of S3 that are a text', '{"s3": "x"}', /s3: not an object/],
  [
    'a setting of S3 that is not known',
    '{"s3": {"secretKey": "hush"}}',
    /s3\.secretKey: unknown key; known: endpoint, region, profile, pathStyle/,
  ],
  ['an endpoint that is a number', '{"s3": {"endpoint": 1}}', /s3\.endpoint: not a string/],
  ['a path style that is a text', '{"s3": {"pathStyle": "yes"}}', /s3\.pathStyle: not true or false/],
  ['builders that are a list', '{"builders": []}', /builders: not an object/],
  [
    'a builder for no system',
    '{"builders": {"rhel-88": "a:1"}}',
    /builders\.rhel-88: unknown operating system; did you mean "rhel-8"\?/,
  ],
  ['a builder that is no image', '{"builders": {"rhel-8": "A B"}}', /builders\.rhel-8: /],
  ['repositories without a list', '{"repositories": {"rhel-8": {}}}', /repositories\.rhel-8: not a list/],
  ['no repository at all', '{"repositories": {"rhel-8": []}}', /repositories\.rhel-8: no repository/],
  [
    'a repository with an odd key',
    repository('rhel-8', { gpg: 1 }),
    /repositories\.rhel-8\[0\]\.gpg: unknown key; known: id, url/,
  ],
  ['a repository with an odd id', repository('rhel-8', { id: 'a b' }), /\[0\]\.id: not a name/],
  [
    'a repository at no address',
    repository('rhel-8', { url: 'ftp://hush' }),
    /\[0\]\.url: not an https, http or file URL/,
  ],
  ['a repository whose key holds a line', repository('rhel-8', { key: 'a\nb' }), /\[0\]\.key: contains a line break/],
  ['suites for rpm', repository('rhel-8', { suites: ['a'] }), /\[0\]\.suites: for apt only/],
  ['no suites for apt', repository('ubuntu-22.04', {}), /\[0\]: suites are missing/],
  [
    'components with a blank',
    repository('ubuntu-22.04', { suites: ['a'], components: ['a b'] }),
    /components\[0\]: not a word/,
  ],
  ['a mirror list for apt', repository('ubuntu-22.04', { suites: ['a'], form: 'mirrorlist' }), /form: for rpm only/],
] as const) {
  test(`${title}: refused with the name of the file, and no secret of it`, async () => {
    await using box = await tree({ 'c.json': text });
    const read = readConfig('c.json', { env: {}, cwd: box.path });
    const error = await assert.rejectsWith(read, 'USAGE');
    assert.ok(error.message.startsWith(`configuration ${box.at('c.json')}: `), error.message);
    assert.ok(error.hint !== undefined);
    assert.match(`${error.message}; ${error.hint}`, message);
    assert.not.match(`${error.message} ${error.hint} ${String(error.cause)}`, /hush/);
  });
}

const OWN = { id: 'own', url: 'https://packages.example/apt/', suites: ['jammy'], components: ['main'], key: '/k.gpg' };

test('everything that can be set is read; paths in the file begin at its folder', async () => {
  const text = JSON.stringify({
    registryMirrors: { 'docker.io': ['one.example', 'https://two.example/hub'], 'quay.io': 'three.example:5000' },
    allowHttp: ['three.example:5000'],
    trustRealms: ['auth.example'],
    anyPlatform: ['registry.example/data'],
    caFile: 'certificates/ca.pem',
    trustedKeys: ['release.pub', '/etc/curlew/site.pub'],
    imageRegistries: ['Registry.Example'],
    providers: { lab: 'lab-provider', cloud: '/opt/cloud' },
    builders: { 'rhel-8': 'registry.example/rocky:8' },
    repositories: { 'ubuntu-22.04': [OWN] },
    s3: { endpoint: 'https://s3.example', region: 'eu-1', profile: 'publisher', pathStyle: false },
    containerNetwork: 'host',
  });
  await using box = await tree({ 'site/c.json': text });
  assert.equal(await readConfig('site/c.json', { env: {}, cwd: box.path }), {
    registryMirrors: [
      ['docker.io', 'one.example'],
      ['docker.io', 'https://two.example/hub'],
      ['quay.io', 'three.example:5000'],
    ],
    allowHttp: ['three.example:5000'],
    trustRealms: ['auth.example'],
    anyPlatform: ['registry.example/data'],
    caFile: box.at('site/certificates/ca.pem'),
    trustedKeys: [box.at('site/release.pub'), '/etc/curlew/site.pub'],
    imageRegistries: ['registry.example'],
    providers: [
      ['lab', box.at('site/lab-provider')],
      ['cloud', '/opt/cloud'],
    ],
    builders: { 'rhel-8': 'registry.example/rocky:8' },
    repositories: { 'ubuntu-22.04': [OWN] },
    s3: { endpoint: 'https://s3.example', region: 'eu-1', profile: 'publisher', pathStyle: false },
    containerNetwork: 'host',
  });
});

test("the user's own file is read where it is, and its absence is no error", async () => {
  await using box = await tree({
    'home/.config/curlew/config.json': '{"allowHttp": ["home"]}',
    'xdg/curlew/config.json': '{"allowHttp": ["xdg"]}',
    'empty/x': '',
  });
  const read = async (env: Readonly<Record<string, string>>): Promise<Config> =>
    readConfig(undefined, { env, cwd: box.path });
  assert.equal((await read({ HOME: box.at('home') })).allowHttp, ['home']);
  assert.equal((await read({ HOME: box.at('home'), XDG_CONFIG_HOME: box.at('xdg') })).allowHttp, ['xdg']);
  // The specification wants an absolute path; anything else is passed over.
  assert.equal((await read({ HOME: box.at('home'), XDG_CONFIG_HOME: 'xdg' })).allowHttp, ['home']);
  assert.equal(await read({ HOME: box.at('empty') }), NOTHING);
  assert.equal(await read({}), NOTHING);
});

test('an empty or relative HOME is not the current folder, whose configuration may be of another', () => {
  for (const HOME of ['', '.']) assert.is(xdgFolder({ HOME }, 'XDG_CONFIG_HOME', '.config'), '/.config');
});

test('a file that was named must be there, and be a file', async () => {
  await using box = await tree({ 'folder/x': '' });
  for (const name of ['none.json', 'folder']) {
    const read = readConfig(name, { env: { HOME: box.path }, cwd: box.path });
    await assert.rejectsWith(read, 'FILE_UNUSABLE', new RegExp(`read the configuration .*${name}`));
  }
});

test.run();
