/** What goes wrong while images are loaded into containerd: content that vanishes, a daemon that dies, a full disk. */
import { execa } from 'execa';
import { mkdir, readFile, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ImageRuntime } from '../../src/runtime/images/image-runtime.ts';
import { loadImages, type LoadedImages } from '../../src/runtime/images/load.ts';
import type { RequiredImage } from '../../src/runtime/images/required-images.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { blobPath, writeLayout } from '../support/image-packages.ts';
import { binaryLike, makeImage, makeLayer, type Image } from '../support/images.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import {
  client,
  containerds,
  docker,
  envOf,
  runtimeAt,
  withShim,
  type Env,
  type RuntimeKind,
} from './support/image-runtimes.ts';
import type { SocketDaemon } from './support/services.ts';

const test = suite('images that cannot be loaded at once', { timeoutMs: 120_000 });

const APP = 'registry.test/faults/app:1';

function imageOf(seed: string, bytes = 200_000): Image {
  return makeImage(['base', 'own'].map((part) => makeLayer({ [`usr/${part}`]: binaryLike(bytes, `${seed} ${part}`) })));
}

function sum(...blobs: readonly { readonly data: Uint8Array }[]): number {
  return blobs.reduce((total, { data }) => total + data.byteLength, 0);
}

interface Lab {
  readonly box: Tree;
  readonly env: Env;
  readonly daemon: SocketDaemon;
  readonly load: (env: Env, images: readonly RequiredImage[]) => Promise<LoadedImages>;
}

/** A daemon of its own: what one test breaks must not matter to the next. */
async function lab(kind: RuntimeKind, box: Tree): Promise<Lab> {
  const daemon = await kind.start(box.at('runtime'));
  const load = async (env: Env, images: readonly RequiredImage[]): Promise<LoadedImages> => {
    const runtime: ImageRuntime = await runtimeAt(kind, env, never);
    return loadImages(runtime, { doing: 'load images of demo-1.0', images }, { signal: never });
  };
  return { box, env: envOf(kind, daemon), daemon, load };
}

/** A shell condition: this is an import of what is sent, and the first one. */
const FIRST_IMPORT = 'if [[ " $* " == *" import "* && "$*" == *" -" ]] && mkdir "$MARK" 2>/dev/null; then';

for (const kind of containerds()) {
  if (kind.why === undefined) testFaults(kind);
  else test.skip(kind.title, kind.why);
}
if (docker().why === undefined) testDocker(docker());
else test.skip(docker().title, docker().why ?? '');

function testDocker(kind: RuntimeKind): void {
  test('docker: a layer whose image is removed between the question and the load is sent with all the others', async () => {
    await using box = await tree();
    const { env, daemon, load } = await lab(kind, box);
    await using _daemon = daemon;
    const image = imageOf('docker');
    const other = 'registry.test/faults/other:1';
    const made = await writeLayout(box.at('other'), { [other]: makeImage(image.layers.slice(0, 1)) });
    await load(env, made.wanted());
    const shim = await withShim(
      box.at('shim'),
      { ...env, MARK: box.at('mark') },
      `if [[ "$1" == load ]] && mkdir "$MARK" 2>/dev/null; then "$REAL" image rm ${other} >/dev/null; fi`,
      'docker',
    );
    const app = await writeLayout(box.at('package'), { [APP]: image });
    const all = sum(image.manifest, image.config, ...image.layers);
    assert.equal(await load(shim, app.wanted()), { references: [APP], bytes: all });
    assert.equal(await load(env, app.wanted()), { references: [], bytes: 0 });
  });

  test('docker: a full disk is told as such', async () => {
    await using box = await tree();
    await mkdir(box.at('runtime/data'), { recursive: true });
    await execa('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', box.at('runtime/data')]);
    try {
      const { env, daemon, load } = await lab(kind, box);
      await using _daemon = daemon;
      const large = makeImage([makeLayer({ large: binaryLike(30_000_000, 'docker', 1) })]);
      const made = await writeLayout(box.at('package'), { [APP]: large });
      await assert.rejectsWith(load(env, made.wanted()), 'NO_SPACE', /no space left on device/);
    } finally {
      await execa('umount', ['--lazy', box.at('runtime/data')], { reject: false });
    }
  });
}

function testFaults(kind: RuntimeKind): void {
  const { title } = kind;

  test(`${title}: a blob that is dropped between the question and the import is sent with all the others`, async () => {
    await using box = await tree();
    const { env, daemon, load } = await lab(kind, box);
    await using _daemon = daemon;
    const image = imageOf(title);
    const [base = image.config] = image.layers;
    const made = await writeLayout(box.at('package'), { [APP]: image });
    await execa('ctr', ['-n', 'k8s.io', 'content', 'ingest', '--expected-digest', base.digest, 'base'], {
      env,
      input: Buffer.from(base.data),
    });
    const shim = await withShim(
      box.at('shim'),
      { ...env, MARK: box.at('mark') },
      `${FIRST_IMPORT} "$REAL" -n k8s.io content rm ${base.digest} >/dev/null; fi`,
    );
    assert.equal(await load(shim, made.wanted()), {
      references: [APP],
      bytes: sum(image.manifest, image.config, ...image.layers),
    });
    assert.equal(await load(env, made.wanted()), { references: [], bytes: 0 });
  });

  test(`${title}: a blob is missed even where its layer is unpacked already`, async () => {
    await using box = await tree();
    const { env, daemon, load } = await lab(kind, box);
    await using _daemon = daemon;
    const image = imageOf(title);
    const [base = image.config] = image.layers;
    const other = makeImage(image.layers.slice(0, 1));
    await load(env, (await writeLayout(box.at('other'), { 'registry.test/faults/other:1': other })).wanted());
    const made = await writeLayout(box.at('package'), { [APP]: image });
    const shim = await withShim(
      box.at('shim'),
      { ...env, MARK: box.at('mark') },
      `${FIRST_IMPORT} "$REAL" -n k8s.io content rm ${base.digest} >/dev/null; fi`,
    );
    const all = sum(image.manifest, image.config, ...image.layers);
    const { bytes } = await load(shim, made.wanted());
    assert.ok(bytes === all || bytes === all + all - base.data.byteLength, `${bytes} of ${all}`);
    assert.match(await client(kind, env, 'content', 'ls', '-q'), base.digest);
  });

  test(`${title}: a daemon that dies in the middle is told, and the next run goes on`, async () => {
    await using box = await tree();
    const first = await lab(kind, box);
    const images = { [APP]: imageOf(title, 3_000_000), 'registry.test/faults/small:1': imageOf(`${title} small`) };
    const made = await writeLayout(box.at('package'), images);
    const shim = await withShim(
      box.at('shim'),
      { ...first.env, MARK: box.at('mark') },
      `${FIRST_IMPORT} (head -c 300000; kill -9 ${first.daemon.pid}; cat) | "$REAL" "$@"; exit; fi`,
    );
    const error = await assert.rejectsWith(
      first.load(shim, made.wanted()),
      'IMAGE_LOAD_FAILED',
      // The second image asks the daemon while the first one is on its way into it.
      /(?:load images of demo-1\.0 into|ask for the images of) containerd: /,
    );
    assert.match(error.hint ?? '', /run the same command again/);
    await first.daemon[Symbol.asyncDispose]();
    const again = await lab(kind, box);
    await using _daemon = again.daemon;
    // Either image may have been the first; the other one may have been imported before the daemon died.
    const { references } = await again.load(again.env, made.wanted());
    assert.ok(references.length > 0 && references.every((reference) => reference in images), references.join());
    assert.equal(await again.load(again.env, made.wanted()), { references: [], bytes: 0 });
  });

  test(`${title}: a full disk is told as such, and what fits afterwards is loaded`, async () => {
    await using box = await tree();
    await mkdir(box.at('runtime/root'), { recursive: true });
    await execa('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'tmpfs', box.at('runtime/root')]);
    try {
      const { env, daemon, load } = await lab(kind, box);
      await using _daemon = daemon;
      const large = makeImage([makeLayer({ large: binaryLike(16_000_000, title, 1) })]);
      const made = await writeLayout(box.at('package'), { [APP]: large });
      const error = await assert.rejectsWith(load(env, made.wanted()), 'NO_SPACE', /no space left on device/);
      assert.match(error.hint ?? '', /free some space/);
      // The runtime takes away what came in vain in its own time.
      const room = async (): Promise<number> => {
        const { bavail, bsize } = await statfs(box.at('runtime/root'));
        return bavail * bsize;
      };
      while ((await room()) < 4_000_000) await pause(20);
      const small = await writeLayout(box.at('small'), { [APP]: imageOf(title, 10_000) });
      assert.equal((await load(env, small.wanted())).references, [APP]);
    } finally {
      await execa('umount', ['--lazy', box.at('runtime/root')]);
    }
  });

  test(`${title}: an image that is another one afterwards is refused`, async () => {
    await using box = await tree();
    const { env, daemon, load } = await lab(kind, box);
    await using _daemon = daemon;
    const evil = 'registry.test/faults/evil:1';
    await load(env, (await writeLayout(box.at('evil'), { [evil]: imageOf(`${title} evil`) })).wanted());
    const image = imageOf(title);
    const made = await writeLayout(box.at('package'), { [APP]: image });
    const shim = await withShim(
      box.at('shim'),
      env,
      `if [[ " $* " == *" import "* && "$*" == *" -" ]]; then "$REAL" "$@"; exec "$REAL" -n k8s.io images tag --force ${evil} ${APP}; fi`,
    );
    await assert.rejectsWith(
      load(shim, made.wanted()),
      'DIGEST_MISMATCH',
      new RegExp(`after the load, ${APP} is sha256:[0-9a-f]{64}, not ${image.manifest.digest}`),
    );
  });

  test(`${title}: a file of the package that is damaged is told as such, not as the runtime's failure`, async () => {
    await using box = await tree();
    const { env, daemon, load } = await lab(kind, box);
    await using _daemon = daemon;
    const image = imageOf(title);
    const made = await writeLayout(box.at('package'), { [APP]: image });
    const layer = join(made.folder, 'images', blobPath(image.layers[0]?.digest ?? image.config.digest));
    await writeFile(layer, (await readFile(layer)).subarray(0, 1000));
    await assert.rejectsWith(load(env, made.wanted()), 'FILE_UNUSABLE', /changed while it was being read/);
    assert.is((await client(kind, env, 'images', 'ls', '-q')).trim(), '');
  });

  test(`${title}: who stops a load stops the client, and nothing half is taken for whole`, async () => {
    await using box = await tree();
    const { env, daemon, load } = await lab(kind, box);
    await using _daemon = daemon;
    const made = await writeLayout(box.at('package'), { [APP]: imageOf(title) });
    const pids = box.at('pids');
    const shim = await withShim(
      box.at('shim'),
      env,
      `if [[ " $* " == *" import "* && "$*" == *" -" ]]; then echo $$ >${pids}; exec tail -f /dev/null; fi`,
    );
    const stop = new AbortController();
    const runtime = await runtimeAt(kind, shim, never);
    const loading = loadImages(
      runtime,
      { doing: 'load', images: made.wanted(), progress: () => stop.abort() },
      { signal: stop.signal },
    );
    assert.is(
      await loading.then(
        () => 'done',
        () => 'stopped',
      ),
      'stopped',
    );
    const pid = (await readFile(pids, 'utf8').catch(() => '')).trim();
    assert.is(pid === '' || (await execa('kill', ['-0', pid], { reject: false })).exitCode !== 0, true);
    assert.equal((await load(env, made.wanted())).references, [APP]);
  });
}

test.run();
