/** Builds from a real Docker engine: `--from-engine`. Needs root and Debian's docker.io and docker-registry. */
import * as assert from '../support/assert.ts';
import { curlew, curlewOk } from '../support/curlew.ts';
import { makeImage, makeLayer, pushImage } from '../support/images.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { cannotRun, run, shell } from './support/programs.ts';
import { startDockerd, startRegistry, type SocketDaemon } from './support/services.ts';

const test = suite('images that only an engine has', { timeoutMs: 120_000 });

const SCRIPT = '# shellcheck shell=bash\nlocal() { true; }\n';
/** Two layers, so that the engine's archive shows their order. */
const IMAGE = makeImage([makeLayer({ one: '1' }), makeLayer({ two: '2'.repeat(100_000) })]);

/** Builds with the engine; whether the package was built or unchanged. */
async function build(box: Tree, engine: SocketDaemon): Promise<string | undefined> {
  const env = { DOCKER_HOST: `unix://${engine.socket}` };
  const text = await curlewOk(['build', 'local', '--json', '--from-engine'], { cwd: box.path, env });
  const { packages } = JSON.parse(text) as { packages: readonly { outcome: string }[] };
  return packages[0]?.outcome;
}

/** Names of the images in the package. */
async function namesIn(box: Tree): Promise<readonly string[]> {
  const index = await run('tar', ['-xzOf', box.at('out/local-1.0.tar.gz'), 'addons/local/1.0/images/index.json']);
  const { manifests } = JSON.parse(index) as {
    manifests: readonly { annotations: Readonly<Record<string, string>> }[];
  };
  return manifests.map(({ annotations }) => annotations['io.containerd.image.name'] ?? '');
}

const reason = cannotRun('dockerd', 'docker-registry', 'tar');
if (reason === undefined) {
  test('a tag that no registry knows comes from the engine, loads again with its id, and is unchanged then', async () => {
    await using box = await tree({
      'addons/local/1.0/Manifest': 'image local registry.invalid/team/local:1\n',
      'addons/local/1.0/install.sh': SCRIPT,
    });
    await using registry = await startRegistry(box.at('registry'));
    await pushImage(registry.host, 'team/local', '1', IMAGE);
    await using engine = await startDockerd(box.at('docker'));
    const docker = async (...words: readonly string[]): Promise<string> =>
      run('/usr/bin/docker', ['-H', `unix://${engine.socket}`, ...words]);
    await docker('pull', '-q', `${registry.host}/team/local:1`);
    await docker('tag', `${registry.host}/team/local:1`, 'registry.invalid/team/local:1');

    const { exitCode, stderr } = await curlew(['build', 'local'], { cwd: box.path });
    assert.is(exitCode, 12, stderr);
    assert.is(await build(box, engine), 'built');
    assert.is(await build(box, engine), 'unchanged');
    assert.equal(await namesIn(box), ['registry.invalid/team/local:1']);
    await curlewOk(['verify', 'out/local-1.0.tar.gz'], { cwd: box.path });

    await docker('rmi', '-f', IMAGE.config.digest);
    await run('tar', ['-xzf', box.at('out/local-1.0.tar.gz'), '-C', box.path]);
    const layout = box.at('addons/local/1.0/images');
    await shell('tar -C "$1" -cf - . | /usr/bin/docker -H "$2" load', layout, `unix://${engine.socket}`);
    const id = await docker('image', 'inspect', '--format', '{{.Id}}', 'registry.invalid/team/local:1');
    assert.is(id, IMAGE.config.digest);
  });

  test('an image that was pulled by its digest keeps the name with it', async () => {
    await using box = await tree();
    await using engine = await startDockerd(box.at('docker'));
    let pinned = '';
    {
      await using registry = await startRegistry(box.at('registry'));
      await pushImage(registry.host, 'team/local', '1', IMAGE);
      pinned = `${registry.host}/team/local@${IMAGE.manifest.digest}`;
      await run('/usr/bin/docker', ['-H', `unix://${engine.socket}`, 'pull', '-q', pinned]);
    }
    await using addon = await tree({
      'addons/local/1.0/Manifest': `image local ${pinned}\n`,
      'addons/local/1.0/install.sh': SCRIPT,
    });
    assert.is(await build(addon, engine), 'built');
    assert.equal(await namesIn(addon), [pinned]);
  });

  test('without an engine the error names it and the way to it', async () => {
    await using box = await tree({
      'addons/local/1.0/Manifest': 'image local registry.invalid/team/local:1\n',
      'addons/local/1.0/install.sh': SCRIPT,
    });
    const env = { DOCKER_HOST: `unix://${box.at('none.sock')}` };
    const { exitCode, stderr } = await curlew(['build', 'local', '--from-engine'], { cwd: box.path, env });
    assert.is(exitCode, 12);
    assert.match(stderr, /local-1\.0: image local: .*Docker engine/);
    assert.match(stderr, /DOCKER_HOST/);
  });
} else {
  test.skip('all of them', reason);
}

test.run();
