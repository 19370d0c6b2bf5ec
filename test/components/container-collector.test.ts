/** Packages collected in a container by a script that keeps to the contract of the real ones. Needs root. */
import { mkdir, readFile, readdir } from 'node:fs/promises';
import { createContainerCollector } from '../../src/build/host-packages/container-collector.ts';
import type { Collector, CollectRequest } from '../../src/build/host-packages/collector.ts';
import { digestOf } from '../../src/core/digest.ts';
import { CurlewError } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { BASE, openContainers, startEngine, type EngineBox, type OpenContainers } from './support/engine.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('host packages in a container', { timeoutMs: 120_000 });

/** Makes `<name>_1_all.deb`, holding its own name, or takes it from what is known; special names go wrong. */
const SCRIPT = `
set -euo pipefail
source "$(dirname "\${BASH_SOURCE[0]}")/deb/helper.bash"
mkdir -p "$CURLEW_RESULT"
fetched=0
for name in "$@"; do
  printf 'collecting %s for %s\\n' "$name" "$CURLEW_OS"
  case "$name" in
    missing) printf 'missing\\t%s\\nnear\\t%s\\tmixing\\n' "$name" "$name" >"$CURLEW_RESULT/problem"; exit 1 ;;
    broken) echo 'the lock is held'; exit 2 ;;
    slow) sleep 1000 ;;
    link) ln -s /etc/passwd "$CURLEW_OUT/link_1_all.deb"; continue ;;
    stray) echo x >"$CURLEW_OUT/stray_1_all.deb"; continue ;;
  esac
  file="\${name}_1_all.deb"
  if [[ -n "$CURLEW_KNOWN" && -f "$CURLEW_KNOWN/$file" ]]; then
    cp "$CURLEW_KNOWN/$file" "$CURLEW_OUT/$file"
  else
    printf '%s' "$name" >"$CURLEW_OUT/$file"
    fetched=$((fetched + \${#name}))
  fi
  printf '%s\\t%s\\t1\\tall\\t%s\\thttps://me:secret@mirror.example/x\\n' "$file" "$name" "$(sum "$CURLEW_OUT/$file")" \\
    >>"$CURLEW_RESULT/packages.tsv"
done
env | busybox grep -E '^(CURLEW_|SSL_|HTTPS_)' | busybox sort >"$CURLEW_OUT/Release"
if [[ -n "\${SSL_CERT_FILE-}" ]]; then cat "$SSL_CERT_FILE" >>"$CURLEW_OUT/Release"; fi
: >"$CURLEW_RESULT/requires"
echo "$fetched" >"$CURLEW_RESULT/fetched"
`;

const opened = createOpened();
let box: Tree;
let engine: EngineBox;
let before: readonly string[];
let requests = 0;

async function request(names: readonly string[], known?: string): Promise<CollectRequest> {
  const at = `request${(requests += 1)}`;
  const [folder, scratch] = [box.at(at, 'out'), box.at(at, 'scratch')];
  for (const path of [folder, scratch]) await mkdir(path, { recursive: true });
  return { id: at, task: 'collect', os: 'ubuntu-22.04', arch: 'amd64', names, known, folder, scratch };
}

/** The first line of a file of authorities. */
const AUTHORITY = '-----BEGIN CERTIFICATE-----';

function collector({ containers }: OpenContainers, caFile?: string): Collector {
  const builders = { 'ubuntu-22.04': BASE };
  const scripts = box.at('scripts');
  return createContainerCollector({ containers, scripts, builders, repositories: {}, caFile, limitMs: 60_000 });
}

const why = cannotRun('dockerd', '/usr/bin/docker', 'busybox', 'bash-static');
if (why !== undefined) test.skip('all of it', why);
else {
  test.before(async () => {
    box = opened.keep(
      await tree({
        'scripts/host-packages/deb.sh': SCRIPT,
        'scripts/host-packages/deb/helper.bash':
          'sum() { local sum; sum="$(busybox sha256sum <"$1")"; echo "${sum%% *}"; }\n',
        'ca.pem': `${AUTHORITY}\n`,
      }),
    );
    engine = opened.keep(await startEngine(box.at('engine')));
    before = await engine.inventory();
  });
  test.after(opened.close);

  test('files and metadata come out, their digests are checked, and lines are told', async ({ signal }) => {
    await using open = await openContainers({ ...engine.env, HTTPS_PROXY: 'http://proxy.example:1' });
    const asked = await request(['alpha', 'beta']);
    const { report } = open;
    const { packages, requires, fetched } = await collector(open, box.at('ca.pem')).collect(asked, { report, signal });
    assert.equal(packages[1], {
      file: 'beta_1_all.deb',
      name: 'beta',
      version: '1',
      arch: 'all',
      size: 4,
      digest: digestOf('beta'),
      repository: 'https://mirror.example/x',
    });
    assert.equal([packages.length, requires, fetched], [2, [], 9]);
    assert.equal((await readdir(asked.folder)).toSorted(), ['Release', 'alpha_1_all.deb', 'beta_1_all.deb']);
    assert.equal((await readFile(`${asked.folder}/Release`, 'utf8')).trim().split('\n'), [
      'CURLEW_ARCH=amd64',
      'CURLEW_KNOWN=',
      'CURLEW_METADATA=1',
      'CURLEW_MODE=container',
      'CURLEW_MODULES=0',
      'CURLEW_OS=ubuntu-22.04',
      'CURLEW_OUT=/curlew/answer/out',
      'CURLEW_REPOSITORIES=',
      'CURLEW_RESOLVE=missing',
      'CURLEW_RESULT=/curlew/answer/result',
      'CURLEW_STATE=/curlew/state',
      'CURLEW_TASK=collect',
      'HTTPS_PROXY=http://proxy.example:1',
      'SSL_CERT_FILE=/curlew/authorities.pem',
      AUTHORITY,
    ]);
    assert.ok(open.lines().includes('collecting alpha for ubuntu-22.04'));
    // A container that did its work is removed while the run goes on.
    await open[Symbol.asyncDispose]();
    assert.equal(await engine.inventory(), before);
  });

  test('what is known is not fetched again', async ({ signal }) => {
    await using open = await openContainers(engine.env);
    const { report } = open;
    const first = await request(['alpha']);
    await collector(open).collect(first, { report, signal });
    const second = await request(['alpha', 'gamma'], first.folder);
    const { packages, fetched } = await collector(open).collect(second, { report, signal });
    assert.equal([packages.length, fetched], [2, 5]);
  });

  for (const [name, code, message] of [
    [
      'missing',
      'PACKAGES_UNRESOLVED',
      /fetch packages for ubuntu-22\.04 \(missing\) \(amd64\): no such package: missing$/,
    ],
    [
      'broken',
      'FETCH_FAILED',
      /the package manager failed\n {2}\| collecting broken for ubuntu-22\.04\n {2}\| the lock is held$/,
    ],
    [
      'link',
      'CONTAINER_FAILED',
      /copying \/curlew\/answer from the container failed: "out\/link_1_all\.deb" is a symbolic link/,
    ],
    ['stray', 'PACKAGE_INVALID', /the script wrote no packages\.tsv/],
  ] as const) {
    test(`a script that ends with ${name} is an error, and leaves nothing in the engine`, async ({ signal }) => {
      await using open = await openContainers(engine.env);
      const { report } = open;
      const error = await assert.rejectsWith(
        collector(open).collect(await request([name]), { report, signal }),
        code,
        message,
      );
      if (name === 'missing') assert.match(error.hint ?? '', /mixing/);
      assert.equal(await engine.inventory(), before);
    });
  }

  test('cancelled while it works, nothing stays', async () => {
    const stop = new AbortController();
    await using open = await openContainers(engine.env, (event) => {
      if (event.type === 'step-log' && event.text.startsWith('collecting slow')) {
        stop.abort(new CurlewError('CANCELLED', 'cancelled'));
      }
    });
    const { report } = open;
    const work = collector(open).collect(await request(['slow']), { report, signal: stop.signal });
    await assert.rejectsWith(work, 'CANCELLED');
    assert.equal(await engine.inventory(), before);
  });

  test('the inputs name the builder image by its digest', async ({ signal }) => {
    await using open = await openContainers(engine.env);
    const id = (await engine.docker('image', 'inspect', '--format', '{{.Id}}', BASE)).trim();
    assert.match(await collector(open).inputs('ubuntu-22.04', { signal }), new RegExp(`^container ${id} sha256:`));
  });
}

test.run();
