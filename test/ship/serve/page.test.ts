/** The page of a server, as a browser without scripts sees it. */
import { digestOf } from '../../../src/core/digest.ts';
import { memorySource, readIndex } from '../../../src/formats/archive/read.ts';
import { verifyArchive } from '../../../src/formats/archive/verify.ts';
import { parseInstaller } from '../../../src/spec/parse.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { publishTestPackages, type TestPackage } from '../../support/bundles.ts';
import { noise, writePackage } from '../../support/packages.ts';
import { publishAs, publishFiveThousand } from '../../support/releases.ts';
import { keepSpec, serveStore, type Served } from '../../support/served.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('ship/serve/page');

const HOSTILE = '<img src=x onerror=alert(1)> "\' &amp; \u202egnp.exe';
const SETTINGS = {
  type: 'object',
  required: ['mode'],
  properties: {
    mode: { enum: ['overlay', 'direct'], description: HOSTILE },
    mtu: { type: 'integer', minimum: 576 },
    ratio: { type: 'number' },
    peers: { type: 'array', items: { type: 'string' } },
    label: { type: 'string', default: HOSTILE },
    adminPassword: { type: 'string' },
    seed: { type: 'string', writeOnly: true },
    [HOSTILE]: { type: 'string' },
  },
};
const pause = {
  id: 'pause',
  reference: 'docker.io/library/pause:3.10',
  digest: digestOf('pause'),
  platform: 'linux/amd64',
};
const PACKAGES: readonly TestPackage[] = [
  {
    name: 'flannel',
    version: '0.26.1',
    files: [{ path: 'x', data: noise(9000) }],
    extra: { settings: SETTINGS, images: [pause] },
  },
  { name: 'flannel', version: '0.25.0', files: [{ path: 'x', data: 'old' }] },
  { name: 'cert-manager', version: '1.16.2', files: [{ path: 'x', data: noise(9000) }], extra: { images: [pause] } },
];
const CHOICE = 'flannel=0.26.1&certManager=latest&flannel:mode:text=direct&flannel:mtu=1400&flannel:peers:list=a%0Ab';

async function scene(
  signal: AbortSignal,
): Promise<{ readonly box: Tree; readonly store: Store; readonly server: Served } & AsyncDisposable> {
  const box = await tree();
  const store = await publishTestPackages(box, PACKAGES, signal);
  const server = await serveStore(store);
  const end = async (): Promise<void> => {
    await server[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  };
  return { box, store, server, [Symbol.asyncDispose]: end };
}

/** What a browser gets, without going where it is sent. */
async function browse({ url }: Served, path: string): Promise<{ readonly answer: Response; readonly text: string }> {
  const answer = await fetch(url + path, { headers: { accept: 'text/html,*/*;q=0.8' }, redirect: 'manual' });
  return { answer, text: await answer.text() };
}

test('a browser gets a page at the root, and every other client the list of addresses', async ({ signal }) => {
  await using at = await scene(signal);
  const { answer, text } = await browse(at.server, '/');
  assert.equal([answer.status, answer.headers.get('content-type')], [200, 'text/html; charset=utf-8']);
  for (const name of ['flannel', 'cert-manager']) assert.match(text, `name="_add" value="${name}"`);
  const plain = await fetch(at.server.url);
  assert.equal([plain.headers.get('content-type'), plain.headers.get('vary')], ['text/plain; charset=utf-8', 'Accept']);
  assert.match(await plain.text(), /^curlew 1\.2\.3\n\n\/bundle\/ID\.tar\.gz /);
});

test('a page needs nothing from elsewhere and nothing inline, and a second request costs no bytes', async ({
  signal,
}) => {
  await using at = await scene(signal);
  for (const path of ['/', `/?${CHOICE}`, '/addon.html?_name=flannel', '/changes.html', '/addon.html?_name=none']) {
    const { answer, text } = await browse(at.server, path);
    assert.match(
      answer.headers.get('content-security-policy') ?? '',
      /^default-src 'none'; style-src 'self'; script-src 'self';/,
    );
    assert.is(answer.headers.get('referrer-policy'), 'no-referrer');
    assert.not.match(text, /<style|<script>|\sstyle=|\son\w+="|javascript:/, path);
    for (const [, file = ''] of text.matchAll(/<(?:script|link|img)[^>]* (?:src|href)="([^"]*)"/g)) {
      assert.match(file, /^\/page\.(?:css|js)$/);
      assert.is((await fetch(at.server.url + file)).status, 200);
    }
  }
  const { answer } = await browse(at.server, `/?${CHOICE}`);
  const again = await fetch(`${at.server.url}/?${CHOICE}`, {
    headers: { accept: 'text/html', 'if-none-match': answer.headers.get('etag') ?? '' },
  });
  assert.is(again.status, 304);
});

test('an address has only what was chosen: an added add-on in its newest version, and no empty field', async ({
  signal,
}) => {
  await using at = await scene(signal);
  const sent = '/?_find=&_arch=amd64&_add=flannel&_add=cert-manager&kurl:proxyAddress:text=&_page=1';
  const { answer } = await browse(at.server, sent);
  assert.equal([answer.status, answer.headers.get('location')], [303, '/?flannel=0.26.1&certManager=1.16.2']);
  const removed = await browse(at.server, '/?flannel=&certManager=1.16.2&flannel:mtu=1400&_find=f');
  assert.is(removed.answer.headers.get('location'), '/?certManager=1.16.2&_find=f');
});

test('the spec of a choice is one that curlew reads, with values of their types', async ({ signal }) => {
  await using at = await scene(signal);
  const text = await (await fetch(`${at.server.url}/installer.yaml?${CHOICE}`)).text();
  const { installer, diagnostics } = parseInstaller('installer.yaml', text);
  assert.equal(
    diagnostics.filter(({ severity }) => severity === 'error'),
    [],
  );
  assert.equal(
    installer?.addons.map(({ name, requested, settings }) => [name, requested, settings]),
    [
      ['flannel', '0.26.1', { mode: 'direct', mtu: 1400, peers: ['a', 'b'] }],
      ['cert-manager', 'latest', {}],
    ],
  );
});

test('the bundle of a choice has the size and the digest on the page, and is that of the same spec in the store', async ({
  signal,
}) => {
  await using at = await scene(signal);
  const { text } = await browse(at.server, `/?${CHOICE}`);
  const answer = await fetch(`${at.server.url}/bundle.tar.gz?${CHOICE}`);
  const bytes = Buffer.from(await answer.arrayBuffer());
  assert.match(text, `(${bytes.byteLength} bytes)`);
  const source = memorySource('bundle', bytes);
  await verifyArchive(source, { signal });
  assert.match(text, (await readIndex(source, { signal })).tocDigest);
  assert.match(text, /<code>sha256sum<\/code> of the bundle\s+prints another one/);
  assert.match(text, 'docker.io/library/pause:3.10</code> is in flannel, cert-manager');
  const yaml = await (await fetch(`${at.server.url}/installer.yaml?${CHOICE}`)).text();
  const [, id = ''] = /id ([0-9a-f]{7})</.exec(text) ?? [];
  await keepSpec(at.box, id, yaml);
  const stored = await fetch(`${at.server.url}/bundle/${id}.tar.gz`);
  assert.equal(
    [stored.headers.get('etag'), stored.headers.get('content-disposition')],
    [answer.headers.get('etag'), answer.headers.get('content-disposition')],
  );
});

test('the command for a machine with network fetches a script with the spec, of the chosen release', async ({
  signal,
}) => {
  await using at = await scene(signal);
  await publishAs(at.store, 'r2', [], signal);
  const { text } = await browse(at.server, `/?_release=r1&${CHOICE}`);
  assert.match(text, `curl -fsSL &#39;${at.server.url}/install.sh?_release=r1&amp;flannel=0.26.1&amp;`);
  const script = await (await fetch(`${at.server.url}/install.sh?_release=r1&${CHOICE}`)).text();
  assert.match(script, "\ncurlew_start 'install.sh' ");
  assert.match(script, " 'r1' ");
  assert.match(script, '\n    mtu: 1400\n');
});

test('each machine has its own command to copy, and a bundle is unpacked into a folder of its own', async ({
  signal,
}) => {
  await using at = await scene(signal);
  const { text } = await browse(at.server, `/?_release=r1&${CHOICE}`);
  const commands = [...text.matchAll(/<code>((?:curl|curlew pull|mkdir) .*?)<\/code><\/pre>/gs)].map(
    ([, one = '']) => one,
  );
  assert.is(commands.length, 3, text);
  assert.ok(
    commands.every((one) => !one.includes('\n')),
    commands.join(' | '),
  );
  assert.match(
    commands[2] ?? '',
    /^mkdir bundle &amp;&amp; tar -xzf [0-9a-f]{7}\.tar\.gz -C bundle &amp;&amp; sudo bundle\/install\.sh$/,
  );
});

test('a choice that cannot be installed says why, keeps its fields, and offers no bundle', async ({ signal }) => {
  await using at = await scene(signal);
  const { answer, text } = await browse(at.server, '/?flannel=0.26.1&flannel:mtu=100');
  assert.is(answer.status, 200);
  assert.match(text, 'flannel requires the setting &quot;mode&quot;');
  assert.match(text, 'flannel.mtu must be &gt;= 576');
  assert.match(text, /name="flannel:mtu"\s+value="100"/);
  assert.not.match(text, 'bundle.tar.gz');
  const unknown = (await browse(at.server, '/?flanel=1.0&flanel:x:text=kept')).text;
  assert.match(unknown, 'did you mean flannel?');
  assert.match(unknown, 'name="flanel:x:text" value="kept"');
  const wrong = (await browse(at.server, '/?kubernetes=1.0&kubernetes:maxPodsPerNode:text=many')).text;
  assert.match(wrong, 'kubernetes.maxPodsPerNode');
});

test('a choice that has no bundle is refused alike in whatever it would become', async ({ signal }) => {
  await using at = await scene(signal);
  const became = async (query: string): Promise<readonly [number, string]> => {
    const paths = ['bundle.tar.gz', 'installer.yaml', 'installer.yaml?_resolve', 'install.sh'];
    const answers = await Promise.all(
      paths.map(async (path): Promise<readonly [number, string]> => {
        const { answer, text } = await browse(at.server, `/${path}${path.includes('?') ? '&' : '?'}${query}`);
        return [answer.status, answer.status === 200 ? '' : text];
      }),
    );
    const [bundle = [0, '']] = answers;
    for (const other of answers) assert.equal(other, bundle, query);
    return bundle;
  };
  for (const [query, status, says] of [
    [`_release=r1&${CHOICE}`, 200, ''],
    ['_release=r1', 422, 'this address chooses no add-on'],
    ['_release=r1&flannel=9.9.9', 422, 'flannel'],
    ['_release=r1&flanel=1.0', 422, 'did you mean flannel?'],
    ['_release=r1&flannel=0.26.1&flannel:mtu=100', 422, 'flannel.mtu must be >= 576'],
    ['_release=r1&_arch=arm64&flannel=0.26.1', 422, 'arm64'],
    ['_release=r9&flannel=0.26.1', 404, 'release "r9" does not exist'],
    ['_release=%2E%2E&flannel=0.26.1', 404, 'not found'],
  ] as const) {
    const [found, text] = await became(query);
    assert.is(found, status, query);
    assert.match(text, says);
  }
  await using lenient = await serveStore(at.store, { site: { allowInvalidSettings: true } });
  const { answer } = await browse(lenient, '/installer.yaml?_release=r1&flannel=0.26.1&flannel:mtu=100');
  assert.is(answer.status, 200);
});

test('secrets have no field, and an address with one is refused without repeating it', async ({ signal }) => {
  await using at = await scene(signal);
  const { text } = await browse(at.server, '/?flannel=0.26.1');
  assert.not.match(text, /name="flannel:(?:adminPassword|seed)/);
  assert.match(text, /step="1" min="576" id="flannel:mtu"/);
  assert.match(text, /step="any" id="flannel:ratio"/);
  assert.match(text, 'adminPassword, seed');
  for (const path of ['/', '/bundle.tar.gz', '/installer.yaml', '/install.sh']) {
    const refused = await browse(at.server, `${path}?flannel=0.26.1&flannel:adminPassword:text=hunter2`);
    assert.is(refused.answer.status, 400, path);
    assert.match(refused.text, 'a secret must not be part of an address');
    assert.not.match(refused.text, 'hunter2');
  }
  assert.not.match(JSON.stringify(at.server.log), 'hunter2');
});

test('an address decides neither where a package comes from nor what runs as root', async ({ signal }) => {
  await using at = await scene(signal);
  for (const query of [
    'flannel:s3Override:text=https://example.com/other.tar.gz',
    'flannel:version:text=0.25.0',
    'iptablesConfig:iptablesCmds:list=-F',
  ]) {
    for (const path of ['/', '/bundle.tar.gz', '/installer.yaml', '/install.sh']) {
      const { answer, text } = await browse(at.server, `${path}?flannel=0.26.1&${query}`);
      assert.is(answer.status, 400, `${path} ${query}`);
      assert.match(text, 'only an installer spec can have this setting');
    }
  }
});

test('hostile text of a package is text on every page', async ({ signal }) => {
  await using at = await scene(signal);
  const search = encodeURIComponent(HOSTILE);
  for (const path of [
    '/?flannel=0.26.1',
    '/addon.html?_name=flannel',
    `/?_find=${search}`,
    `/addon.html?_name=${search}`,
    `/changes.html?_from=${search}`,
    `/?_release=${search}`,
  ]) {
    const { answer, text } = await browse(at.server, path);
    assert.ok(answer.status < 500, path);
    assert.not.match(text, /<img|\u202e|x: <|onerror=alert\(1\)>/, path);
  }
});

test('what is no choice is refused with a page that says it', async ({ signal }) => {
  await using at = await scene(signal);
  const many = Array.from({ length: 101 }, (_, at) => `a${at}=1`).join('&');
  for (const [query, status, says] of [
    [many, 400, 'more than 100 add-ons'],
    [`a=1&${Array.from({ length: 201 }, (_, at) => `a:s${at}=1`).join('&')}`, 400, 'more than 200 settings'],
    ['..=1', 400, 'not the name of an add-on'],
    ['a=%3E1', 400, 'is not a version'],
    ['_release=r9', 404, 'does not exist'],
  ] as const) {
    const { answer, text } = await browse(at.server, `/?${query}`);
    assert.equal(
      [answer.status, answer.headers.get('content-type')],
      [status, 'text/html; charset=utf-8'],
      query.slice(0, 40),
    );
    assert.match(text, says);
  }
});

test('a release with five thousand versions has short pages', async ({ signal }) => {
  await using box = await tree();
  const store = await publishFiveThousand(box, signal);
  await using server = await serveStore(store);
  const pages = [];
  for (const [path, parts, count] of [
    ['/', 'name="_add"', 100],
    ['/?_page=26', 'name="_add"', 1],
    ['/?many=1.2499', '<option(?: selected)?>1\\.', 12],
    ['/addon.html?_name=many', 'Choose 1\\.', 101],
    ['/addon.html?_name=many&_page=25', 'Choose 1\\.', 101],
  ] as const) {
    const { answer, text } = await browse(server, path);
    assert.is(answer.status, 200, path);
    assert.is([...text.matchAll(new RegExp(parts, 'g'))].length, count, path);
    assert.ok(text.length < 150_000, `${path} has ${text.length} characters`);
    pages.push(text);
  }
  assert.match(pages[0] ?? '', /2501 add-ons[^]*page 1 of 26/);
  assert.match(pages[2] ?? '', 'all 2500 versions');
});

test('the page of a package shows what it contains, and goes back to the choice with it', async ({ signal }) => {
  await using at = await scene(signal);
  const { text } = await browse(at.server, '/addon.html?certManager=1.16.2&_name=flannel');
  for (const part of [
    '<h1><bdi>flannel</bdi> <code>0.26.1</code></h1>',
    pause.reference,
    pause.digest,
    '<code>x</code> <small>9 kB</small>',
  ])
    assert.match(text, part);
  assert.match(text, 'name="certManager" value="1.16.2"');
  assert.match(text, /name="flannel"\s+value="0\.25\.0"/);
  assert.match((await browse(at.server, '/addon.html?_name=flannel&_version=0.25.0')).text, '<code>0.25.0</code></h1>');
  assert.is((await browse(at.server, '/addon.html?_name=none')).answer.status, 422);
  assert.match((await browse(at.server, '/addon.html?flannel=0.25.0')).text, '<code>0.25.0</code></h1>');
  for (const query of ['', '?flannel=0.25.0&certManager=1.16.2']) {
    const unnamed = await browse(at.server, `/addon.html${query}`);
    assert.is(unnamed.answer.status, 400);
    assert.match(unnamed.text, 'does not say which add-on to show (add _name=NAME to it');
  }
});

test('what changed between two releases is shown by add-on, with versions, images and sizes', async ({ signal }) => {
  await using at = await scene(signal);
  const files = [];
  for (const [name, version, content, images] of [
    ['flannel', '0.27.0', 'new', []],
    ['cert-manager', '1.16.2', 'other', [{ ...pause, digest: digestOf('moved') }]],
    ['longhorn', '1.7.2', 'added', []],
  ] as const) {
    const path = at.box.at(`r2-${name}.tar.gz`);
    files.push({ path, addon: await writePackage(path, name, version, [{ path: 'x', data: content }], { images }) });
  }
  await publishAs(at.store, 'r2', files, signal);
  const pinned = await browse(
    at.server,
    '/installer.yaml?_resolve&_release=r1&flannel=latest&flannel:mode:text=direct',
  );
  assert.match(pinned.text, /version: "?0\.26\.1/);
  const { text } = await browse(at.server, '/changes.html');
  const lines = [...text.matchAll(/<li>([^<]+)<\/li>/g)].map(([, line]) => line);
  assert.equal(lines, [
    '1.16.2 has other content',
    `image ${pause.reference} has another digest in 1.16.2`,
    'the newest is 0.27.0, was 0.26.1',
    `image ${pause.reference} is not in 0.27.0`,
    '0.27.0 is new',
    '1.7.2 is new',
  ]);
  for (const release of ['r1', 'r2']) assert.match(text, `<a href="/?_release=${release}">`);
  assert.match((await browse(at.server, '/changes.html?_from=r2&_to=r1')).text, '0.27.0 is gone');
  assert.match((await browse(at.server, '/changes.html?_from=r1&_to=r1')).text, 'have the same packages');
  assert.match((await browse(at.server, '/changes.html?_from=r9')).text, 'does not exist');
});

test.run();
