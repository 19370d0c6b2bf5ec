import { digestOf, hexOf } from '../../../src/core/digest.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import { createImageEngine } from '../../../src/build/containers/engine.ts';
import type { ImageEngine } from '../../../src/build/ports.ts';
import * as assert from '../../support/assert.ts';
import { makeImage, makeLayer } from '../../support/images.ts';
import { ref } from '../../support/pull.ts';
import { suite } from '../../support/suite.ts';
import { tarOf } from '../../support/tar-file.ts';
import { tree } from '../../support/tree.ts';
import { startServer, type Reply, type WebServer } from '../../support/web-server.ts';

const test = suite('build/engine');

const layer = makeLayer({ a: 'a' }, 'docker', 'none');
const image = makeImage([layer], 'docker');

/** An archive as engines write it for an image that was asked for by these names. */
function archive(tags: readonly string[]): Buffer {
  const manifest = [{ Config: 'config.json', RepoTags: tags, Layers: ['layer.tar'] }];
  return tarOf([
    { path: 'config.json', data: image.config.data },
    { path: 'layer.tar', data: layer.data },
    { path: 'manifest.json', data: JSON.stringify(manifest) },
  ]);
}

async function startEngine(reply: (path: string) => Reply): Promise<WebServer & { readonly engine: ImageEngine }> {
  const server = await startServer(({ path }) => reply(path));
  return { ...server, engine: createImageEngine({ DOCKER_HOST: `tcp://${server.host}` }) };
}

const PINNED = `registry.example/team/app@${digestOf('manifest')}`;

for (const [text, asked, tags] of [
  ['app:1', 'app:1', ['app:1']],
  ['registry.example/team/app:1', 'registry.example/team/app:1', ['registry.example/team/app:1']],
  [PINNED, PINNED, []],
] as const) {
  test(`${text.slice(0, 40)} is asked for as the engine knows it, and keeps its name`, async ({ signal }) => {
    await using server = await startEngine((path) =>
      path === `/images/${asked}/json`
        ? { status: 200, body: JSON.stringify({ Id: image.config.digest }) }
        : { status: path === `/images/${asked}/get` ? 200 : 404, body: archive(tags) },
    );
    await using box = await tree();
    assert.is(await server.engine.identify(ref(text), { signal }), image.config.digest);
    const found = await server.engine.export(ref(text), { folder: box.path, arch: 'amd64', signal });
    const full = text === 'app:1' ? 'docker.io/library/app:1' : text;
    assert.equal([found.reference, found.names], [full, [full]]);
    assert.is(hexOf(found.config.descriptor.digest), hexOf(image.config.digest));
  });
}

test('an image that the engine does not have is undefined', async ({ signal }) => {
  await using server = await startEngine(() => ({ status: 404, body: '{"message":"No such image: app:1"}' }));
  assert.is(await server.engine.identify(ref('app:1'), { signal }), undefined);
});

test('what the engine says of a failure is told, and what it was about', async ({ signal }) => {
  await using server = await startEngine(() => ({ status: 500, body: '{"message":"disk on fire"}' }));
  await using box = await tree();
  const asked = server.engine.identify(ref('app:1'), { signal });
  await assert.rejectsWith(asked, 'FETCH_FAILED', /look up docker\.io\/library\/app:1 .*disk on fire/);
  const exported = server.engine.export(ref('app:1'), { folder: box.path, arch: 'amd64', signal });
  await assert.rejectsWith(exported, 'FETCH_FAILED', /export docker\.io\/library\/app:1 .*disk on fire/);
});

test('an archive that breaks off is an error of the export', async ({ signal }) => {
  const body = archive(['app:1']);
  await using server = await startEngine(() => ({ status: 200, body, sending: { resetAt: 1000 } }));
  await using box = await tree();
  const exported = server.engine.export(ref('app:1'), { folder: box.path, arch: 'amd64', signal });
  await assert.rejectsWith(exported, 'FETCH_FAILED', /export docker\.io\/library\/app:1/);
});

test('no engine is told with the way to name one', async ({ signal }) => {
  const engine = createImageEngine({ DOCKER_HOST: 'unix:///nowhere/docker.sock' });
  const error = await assert.rejectsWith(engine.identify(ref('app:1'), { signal }), 'FETCH_FAILED', /does not respond/);
  assert.match(error.hint ?? '', /DOCKER_HOST/);
});

test('DOCKER_HOST of a kind that is not understood is refused, without the secrets in it', () => {
  const error = assert.throwsWith(
    () => createImageEngine({ DOCKER_HOST: 'ssh://me:hush@host' }),
    'USAGE',
    /DOCKER_HOST/,
  );
  assert.not.match(error.message, /hush/);
});

for (const what of ['identify', 'export'] as const) {
  test(`an engine that never answers is left when the build is cancelled (${what})`, async () => {
    const stop = new AbortController();
    const cancelled = new CurlewError('CANCELLED', 'cancelled');
    await using server = await startEngine(() => {
      setImmediate(() => stop.abort(cancelled));
      return { status: 200, sending: 'never' };
    });
    await using box = await tree();
    const { signal } = stop;
    const asked =
      what === 'identify'
        ? server.engine.identify(ref('app:1'), { signal })
        : server.engine.export(ref('app:1'), { folder: box.path, arch: 'amd64', signal });
    await assert.rejectsWith(asked, 'CANCELLED');
  });
}

test.run();
