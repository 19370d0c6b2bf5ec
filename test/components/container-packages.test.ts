/**
 * The real scripts with real apt and dnf in a container: a bare Debian system, the only one whose packages are at hand, takes
 * the place of the distributions' own images. Needs root.
 */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createContainerCollector } from '../../src/build/host-packages/container-collector.ts';
import type { Collected } from '../../src/build/host-packages/collector.ts';
import type { OsId } from '../../src/core/os.ts';
import type { Repository } from '../../src/core/repositories.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import type { WebServer } from '../support/web-server.ts';
import { servePool } from './support/apt-repository.ts';
import { BUILDER, cannotRunBuilder, importBuilder } from './support/builder.ts';
import { openContainers, startEngine, type EngineBox } from './support/engine.ts';
import { createOpened } from './support/opened.ts';
import { ROOT } from './support/programs.ts';
import { filesIn, repositoryOf, startRpmLab, take, type RpmLab } from './support/rpm-lab.ts';
import { openTinyRepository, type TinyRepository } from './support/tiny-repository.ts';

const test = suite('real package managers in a container', { timeoutMs: 200_000 });

const opened = createOpened();
let tiny: TinyRepository;
let pool: WebServer;
let lab: RpmLab;
let engine: EngineBox;
let before: readonly string[];

let requests = 0;

async function collect(
  os: OsId,
  names: readonly string[],
  known: string | undefined,
  signal: AbortSignal,
  repositories: readonly Repository[] = [],
) {
  const at = `request${(requests += 1)}`;
  const [folder, scratch] = [tiny.at(at, 'out'), tiny.at(at, 'scratch')];
  for (const path of [folder, scratch]) await mkdir(path, { recursive: true });
  // The repositories are servers of this machine.
  await using open = await openContainers(engine.env, undefined, 'host');
  const { containers, report } = open;
  const scripts = join(ROOT, 'scripts');
  const collector = createContainerCollector({
    containers,
    scripts,
    builders: { [os]: BUILDER },
    repositories: repositories.length === 0 ? {} : { [os]: repositories },
    limitMs: 120_000,
  });
  const request = { id: at, task: 'collect', os, arch: 'amd64', names, known, folder, scratch } as const;
  const collected = await collector.collect(request, { report, signal });
  return { ...collected, folder, files: await filesIn(folder) };
}

function same(left: Collected, right: Collected): void {
  assert.equal(left.packages, right.packages);
  assert.equal(left.requires, right.requires);
}

const why = cannotRunBuilder();
if (why !== undefined) test.skip('all of it', why);
else {
  test.before(async () => {
    tiny = opened.keep(await openTinyRepository());
    pool = opened.keep(await servePool(tiny.served));
    const started = await startRpmLab();
    lab = started;
    opened.keep({ [Symbol.asyncDispose]: started.close });
    engine = opened.keep(await startEngine(tiny.at('engine')));
    await importBuilder({ engine, tiny, pool, lab });
    before = await engine.inventory();
  });
  test.after(opened.close);

  for (const [os, name] of [
    ['ubuntu-22.04', 'zebra-app'],
    ['rhel-7', 'app'],
  ] as const) {
    test(`${os}: what the host's own package manager gives, byte for byte, and nothing twice`, async ({ signal }) => {
      const host = os === 'rhel-7' ? await take(lab, [name], { os }) : await tiny.collect(pool.url, [name], {}, signal);
      const first = await collect(os, [name], undefined, signal);
      same(first, host);
      assert.ok(first.packages.length > 3 && first.fetched > 0);
      const again = await collect(os, [name], first.folder, signal);
      same(again, first);
      assert.is(again.fetched, 0);
      assert.equal(again.files, first.files);
      for (const file of first.files) {
        const [one, two] = [await readFile(join(first.folder, file)), await readFile(join(again.folder, file))];
        assert.ok(one.equals(two), file);
      }
      assert.equal(await engine.inventory(), before);
    });
  }

  test("a site's repository takes the place of the image's own, with a key that is a file of this machine", async ({
    signal,
  }) => {
    const own = { ...repositoryOf(lab), id: 'site' };
    const { packages } = await collect('rhel-8', ['helper'], undefined, signal, [own]);
    assert.equal(
      packages.map(({ name }) => name),
      ['helper'],
    );
    assert.match(packages[0]?.repository ?? '', lab.server.url);
    const strange = { ...own, key: pathToFileURL(tiny.key.ring).href };
    await assert.rejectsWith(collect('rhel-8', ['helper'], undefined, signal, [strange]), 'SIGNATURE_INVALID');
  });

  test('a package that does not exist is named by apt and by dnf', async ({ signal }) => {
    for (const os of ['ubuntu-22.04', 'rhel-8'] as const) {
      const name = os === 'rhel-8' ? 'appp' : 'zebra-ap';
      const error = await assert.rejectsWith(
        collect(os, [name], undefined, signal),
        'PACKAGES_UNRESOLVED',
        /no such package: /,
      );
      assert.match(error.hint ?? '', os === 'rhel-8' ? /\bapp\b/ : /zebra-app/);
      assert.equal(await engine.inventory(), before);
    }
  });
}

test.run();
