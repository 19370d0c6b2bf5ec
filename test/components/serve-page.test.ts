/** The page of `curlew serve` in a browser: by keyboard alone, with and without scripts, for everyone. */
import { stat } from 'node:fs/promises';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseInstaller } from '../../src/spec/parse.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import { until } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { publishTestPackages } from '../support/bundles.ts';
import { curlewOk } from '../support/curlew.ts';
import { missing, unless } from '../support/needs.ts';
import { noise } from '../support/packages.ts';
import { madePackage, publishAs } from '../support/releases.ts';
import { serveStore, type Served } from '../support/served.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { AXE, axeViolations, startBrowser, type Browser } from './support/browser.ts';

const test = suite('the page of serve', { timeoutMs: 180_000 });
const inBrowser = unless(missing('chromium', AXE), test);
const SETTINGS = {
  type: 'object',
  required: ['mode'],
  properties: {
    mode: { enum: ['overlay', 'direct'], description: 'How packets travel between machines.' },
    mtu: { type: 'integer', minimum: 576, default: 1450 },
    peers: { type: 'array', items: { type: 'string' } },
  },
};

interface Scene extends AsyncDisposable {
  readonly box: Tree;
  readonly server: Served;
  readonly browser: Browser;
}

async function scene(signal: AbortSignal): Promise<Scene> {
  const box = await tree();
  const extra = { settings: SETTINGS };
  const others = Array.from({ length: 3 }, (_, at) => ({ name: `zz-${at}`, version: '1.0', files: [] }));
  const store = await publishTestPackages(
    box,
    [
      { name: 'flannel', version: '0.26.1', files: [{ path: 'x', data: noise(50_000) }], extra },
      {
        name: 'cert-manager',
        version: '1.16.2',
        files: [{ path: 'x', data: noise(50_000) }],
      },
      { name: `long-${'name-'.repeat(18)}x`, version: `1.0-${'v'.repeat(100)}`, files: [] },
      ...others,
    ],
    signal,
  );
  await publishAs(store, 'r2', [await madePackage(box, 'flannel', '0.27.0', 'new')], signal);
  const server = await serveStore(store);
  const browser = await startBrowser(box.at('browser'));
  const end = async (): Promise<void> => {
    await browser[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  };
  return { box, server, browser, [Symbol.asyncDispose]: end };
}

/** Presses Tab until this element has the focus. */
async function tabTo({ evaluate, press }: Browser, selector: string): Promise<void> {
  for (let presses = 0; presses < 400; presses += 1) {
    if ((await evaluate(`document.activeElement.matches(${JSON.stringify(selector)})`)) === true) return;
    await press('Tab');
  }
  throw new Error(`Tab does not reach ${selector}`);
}

/** Presses the button that updates the installer, and waits for the page whose address has this part. */
async function update(browser: Browser, part: string): Promise<void> {
  await tabTo(browser, '#installer button.main, .below button');
  await browser.press('Enter');
  const arrived = `location.search.includes(${JSON.stringify(part)}) && document.readyState === 'complete'`;
  await until(async () => (await browser.evaluate(arrived)) === true);
}

async function textOf({ evaluate }: Browser, selector: string): Promise<string> {
  return String(await evaluate(`document.querySelector(${JSON.stringify(selector)}).textContent`));
}

for (const [how, off] of [
  ['with scripts', false],
  ['without scripts', true],
] as const) {
  inBrowser(`by keyboard alone, ${how}: two add-ons, a setting, the spec, and the bundle`, async ({ signal }) => {
    await using at = await scene(signal);
    const { box, server, browser } = at;
    await browser.send('Emulation.setScriptExecutionDisabled', { value: off });
    await browser.open(`${server.url}/?_release=r1`);
    await tabTo(browser, '[name=_add][value=cert-manager]');
    await browser.press('Space');
    await tabTo(browser, '[name=_add][value=flannel]');
    await browser.press('Space');
    await update(browser, 'flannel=0.26.1');
    assert.match(await textOf(browser, '.problems'), 'flannel requires the setting "mode"');

    await tabTo(browser, '[id="flannel:mode"]');
    await browser.press('ArrowDown', 'ArrowDown');
    await tabTo(browser, '[id="flannel:mtu"]');
    await browser.press('1', '4', '0', '0');
    if (!off) assert.is(await browser.evaluate(`document.querySelectorAll('.stale').length`), 1);
    await update(browser, 'flannel:mtu=1400');

    const { installer } = parseInstaller('installer.yaml', await textOf(browser, '.copy pre'));
    assert.equal(
      installer?.addons.map(({ name, settings }) => [name, settings]),
      [
        ['cert-manager', {}],
        ['flannel', { mode: 'direct', mtu: 1400 }],
      ],
    );
    const link = String(await browser.evaluate(`document.querySelector('a.main').href`));
    const shown = await textOf(browser, '#installer');
    const path = box.at('bundle.tar.gz');
    await curlewOk(['pull', link, '-o', path, '--allow-http', new URL(link).host], { cwd: box.path });
    assert.match(shown, `(${(await stat(path)).size} bytes)`);
    const verified = await curlewOk(['verify', path], { cwd: box.path });
    const [digest = ''] = /sha256:[0-9a-f]{64}/.exec(verified) ?? [];
    assert.ok(digest !== '' && shown.includes(digest), verified);
  });
}

inBrowser('axe finds nothing, and nothing is cut off, at two widths, in light and dark', async ({ signal }) => {
  await using at = await scene(signal);
  const { server, browser } = at;
  for (const path of [
    '/',
    '/?flannel=0.26.1&flannel:mode:text=direct&certManager=latest',
    '/?flannel=0.26.1&flannel:mtu=1',
    '/?_find=long',
    '/addon.html?_name=flannel&_version=0.26.1',
    '/changes.html',
    '/?_release=none',
  ]) {
    for (const [width, scheme] of [
      [1280, 'light'],
      [380, 'dark'],
    ] as const) {
      await browser.send('Emulation.setDeviceMetricsOverride', {
        width,
        height: 900,
        deviceScaleFactor: 1,
        mobile: false,
      });
      await browser.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
      await browser.open(server.url + path);
      await browser.evaluate(`for (const one of document.querySelectorAll('details')) one.open = true`);
      assert.equal(await axeViolations(browser), [], `${path} ${width} ${scheme}`);
      assert.ok(Number(await browser.evaluate('document.documentElement.scrollWidth')) <= width, `${path} ${width}`);
    }
  }
});

inBrowser('on a phone, the name of each row has a line of its own', async ({ signal }) => {
  await using at = await scene(signal);
  const { server, browser } = at;
  await browser.send('Emulation.setDeviceMetricsOverride', {
    width: 390,
    height: 844,
    deviceScaleFactor: 1,
    mobile: true,
  });
  for (const path of ['/', '/addon.html?_name=flannel&_version=0.26.1', '/changes.html']) {
    await browser.open(server.url + path);
    const widths = `[...document.querySelectorAll('tbody tr > :first-child')].map((one) => one.clientWidth)`;
    const names = (await browser.evaluate(widths)) as readonly number[];
    assert.ok(names.length > 0 && Math.min(...names) > 300, `${path}: ${names.join(' ')}`);
  }
});

inBrowser('below a prefix of a proxy, every link stays there, and the bundle comes from there', async ({ signal }) => {
  await using at = await scene(signal);
  const { box, server, browser } = at;
  const asked: string[] = [];
  let behind = server;
  const proxy = createServer((incoming, answer) => {
    const { url = '', method, headers } = incoming;
    asked.push(url);
    if (!url.startsWith('/site/curlew/')) {
      answer.writeHead(404).end();
      return;
    }
    const path = url.slice('/site/curlew'.length);
    const forwarded = httpRequest({ host: '127.0.0.1', port: behind.port, path, method, headers }, (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(answer);
    });
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => {
    proxy.listen(0, '127.0.0.1', resolve);
  });
  const host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const publicUrl = `http://${host}/site/curlew`;
  await using public_ = await serveStore(createFolderStore(box.at('store')), { listen: { publicUrl } });
  behind = public_;
  try {
    await browser.open(`${publicUrl}/?_release=r1`);
    await tabTo(browser, '[name=_add][value=cert-manager]');
    await browser.press('Space');
    await update(browser, 'certManager');
    assert.ok(String(await browser.evaluate('location.href')).startsWith(`${publicUrl}/?`));
    assert.match(await textOf(browser, '#installer'), `${publicUrl}/`);
    const links = await browser.evaluate(
      `[...document.querySelectorAll('a[href], form')].map((one) => one.href ?? one.action)`,
    );
    for (const link of links as readonly string[]) assert.ok(link.startsWith(`${publicUrl}/`), link);
    const bundle = String(await browser.evaluate(`document.querySelector('a.main').href`));
    await curlewOk(['pull', bundle, '-o', box.at('b.tar.gz'), '--allow-http', host], { cwd: box.path });
    await browser.open(`${publicUrl}/changes.html`);
    assert.match(await textOf(browser, 'main'), '0.27.0');
    // A browser asks for the icon of a host.
    assert.equal(
      asked.filter((one) => !one.startsWith('/site/curlew/') && one !== '/favicon.ico'),
      [],
    );
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
});

inBrowser('printed, the page is the whole spec in black on white, without what can be pressed', async ({ signal }) => {
  await using at = await scene(signal);
  const { server, browser } = at;
  await browser.send('Emulation.setEmulatedMedia', {
    media: 'print',
    features: [{ name: 'prefers-color-scheme', value: 'dark' }],
  });
  await browser.open(`${server.url}/?flannel=0.26.1&flannel:mode:text=direct`);
  const shown = await browser.evaluate(
    `[...document.querySelectorAll('button, header, #add-ons')].filter((one) => one.checkVisibility()).length`,
  );
  assert.is(shown, 0);
  const spec = `document.querySelector('.copy pre')`;
  assert.is(await browser.evaluate(`${spec}.checkVisibility() && ${spec}.scrollHeight <= ${spec}.clientHeight`), true);
  assert.equal(
    await browser.evaluate(`['color', 'backgroundColor'].map((one) => getComputedStyle(document.body)[one])`),
    ['rgb(27, 31, 36)', 'rgb(255, 255, 255)'],
  );
});

test.run();
