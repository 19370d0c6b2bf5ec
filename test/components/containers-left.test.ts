/** Images that runs bring into a real Docker engine, runs that are cancelled, runs that are killed. Needs root. */
import { once } from 'node:events';
import { mkdir, stat } from 'node:fs/promises';
import { execa } from 'execa';
import { CurlewError } from '../../src/core/errors.ts';
import type { ContainerRequest } from '../../src/build/containers/containers.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { compiledModule } from '../support/compiled.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { startRegistry } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { BASE, openContainers, startEngine, type EngineBox } from './support/engine.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun, ROOT } from './support/programs.ts';

const test = suite('what a run leaves in the engine', { timeoutMs: 120_000 });
const IMAGE = makeImage([makeLayer({ a: 'a' }, 'docker')], 'docker');

const opened = createOpened();
let box: Tree;
let engine: EngineBox;
let before: readonly string[];

/** A container whose program may write to /out. */
function script(text: string): ContainerRequest {
  const files = [{ kind: 'folder', path: 'out', mode: 0o755 }] as const;
  return { id: 'trial', doing: 'try', image: BASE, command: ['/bin/sh', '-c', text], files, limitMs: 60_000 };
}

const nothing = async (): Promise<void> => undefined;

const why = cannotRun('dockerd', '/usr/bin/docker', 'busybox');
if (why !== undefined) test.skip('all of it', why);
else {
  test.before(async () => {
    box = opened.keep(await tree());
    engine = opened.keep(await startEngine(box.at('engine')));
    before = await engine.inventory();
  });
  test.after(opened.close);

  test('an image that is absent is pulled once, and removed at the end', async ({ signal }) => {
    await using registry = await startRegistry({
      'tools/box:1': IMAGE,
    });
    const reference = `${registry.host}/tools/box:1`;
    const events = await (async () => {
      await using open = await openContainers(engine.env);
      const bring = async (): Promise<string> =>
        open.containers.bring(reference, { id: 'trial', report: open.report, signal });
      const head = await open.containers.identify(reference, { signal });
      const [one, two] = await Promise.all([bring(), bring()]);
      assert.is(one, two);
      assert.ok((await engine.inventory()).some((line) => line.includes('tools/box:1')));
      assert.is(await open.containers.identify(reference, { signal }), head, 'the same digest, pulled or not');
      return open.lines();
    })();
    assert.is(events.filter((line) => line.startsWith('pull ')).length, 1);
    assert.is(registry.blobRequests().filter(({ path }) => path.includes('/blobs/')).length, 2);
    assert.equal(await engine.inventory(), before);
  });

  test('an image that was there stays, and needs no registry', async ({ signal }) => {
    {
      await using open = await openContainers(engine.env);
      await open.containers.bring(BASE, { id: 'trial', report: open.report, signal });
      const digest = await open.containers.identify(BASE, { signal });
      assert.equal(await engine.docker('image', 'inspect', '--format', '{{.Id}}', BASE), digest);
    }
    assert.equal(await engine.inventory(), before);
  });

  test('an image that no registry has is named', async ({ signal }) => {
    await using registry = await startRegistry({});
    await using open = await openContainers(engine.env);
    const reference = `${registry.host}/no/such:1`;
    const error = await open.containers.bring(reference, { id: 'trial', report: open.report, signal }).catch((e) => e);
    assert.instance(error, CurlewError);
    assert.match(error.message, /pull 127\.0\.0\.1:\d+\/no\/such:1: /);
    assert.equal(await engine.inventory(), before);
  });

  test('cancelled during a pull, nothing stays', async () => {
    const stop = new AbortController();
    await using registry = await startRegistry(
      { 'tools/box:1': IMAGE },
      {
        faults: [
          ({ path }) => {
            if (!path.includes(IMAGE.layers[0]?.digest ?? '')) return undefined;
            stop.abort(new CurlewError('CANCELLED', 'cancelled'));
            return { status: 200, sending: 'never' };
          },
        ],
      },
    );
    {
      await using open = await openContainers(engine.env);
      const reference = `${registry.host}/tools/box:1`;
      await assert.rejectsWith(
        open.containers.bring(reference, { id: 'trial', report: open.report, signal: stop.signal }),
        'CANCELLED',
      );
      assert.equal(await engine.inventory(), before);
    }
    assert.equal(await engine.inventory(), before);
  });

  for (const [when, text] of [
    ['while it runs', 'echo ready; trap "" TERM INT; sleep 1000'],
    ['while it leaves many bytes behind', 'echo ready; dd if=/dev/zero of=/out/x bs=1048576 count=300; sleep 1000'],
  ] as const) {
    test(`cancelled ${when}, the container goes`, async () => {
      const stop = new AbortController();
      await using open = await openContainers(engine.env, ({ type }) => {
        if (type === 'step-log') stop.abort(new CurlewError('CANCELLED', 'cancelled'));
      });
      const { report } = open;
      await assert.rejectsWith(
        open.containers.run(script(text), nothing, { report, signal: stop.signal }),
        'CANCELLED',
      );
      assert.equal(await engine.inventory(), before);
    });
  }

  test('cancelled while its folder is collected, the container goes', async () => {
    const stop = new AbortController();
    await using open = await openContainers(engine.env);
    const into = box.at('collected');
    await mkdir(into);
    const request = script('dd if=/dev/zero of=/out/x bs=1048576 count=200');
    const work = open.containers.run(
      request,
      async ({ collect }) => {
        const collected = collect('/out', { into, limits: { bytes: 2 ** 30, files: 10 } });
        await appears(`${into}/x`);
        stop.abort(new CurlewError('CANCELLED', 'cancelled'));
        return collected;
      },
      { report: open.report, signal: stop.signal },
    );
    await assert.rejectsWith(work, 'CANCELLED');
    assert.ok((await stat(`${into}/x`)).size < 200 * 2 ** 20);
    assert.equal(await engine.inventory(), before);
  });

  test('what a killed run left is removed by the next one, what a living one uses is not', async ({ signal }) => {
    await using registry = await startRegistry({
      'tools/box:1': IMAGE,
    });
    const reference = `${registry.host}/tools/box:1`;
    const helper = execa('node', [compiledModule('test/components/support/killed-run.ts'), reference], {
      cwd: ROOT,
      env: engine.env,
      stdin: 'ignore',
    });
    await Promise.race([once(helper.stdout, 'data'), helper]);
    const during = await engine.inventory();
    {
      await using open = await openContainers(engine.env);
      await open.containers.bring(BASE, { id: 'trial', report: open.report, signal });
    }
    assert.equal(await engine.inventory(), during, 'the other run lives');
    assert.is(during.filter((line) => line.startsWith('container ')).length, 2);
    assert.ok(during.some((line) => line.startsWith('image ') && line.includes('tools/box:1')));
    helper.kill('SIGKILL');
    await helper.catch(() => undefined);
    {
      await using open = await openContainers(engine.env);
      await open.containers.bring(BASE, { id: 'trial', report: open.report, signal });
    }
    assert.equal(await engine.inventory(), before);
  });
}

test.run();
