/** `dockerout` with a real Docker engine: what is built and taken, what is told when it fails. Needs root. */
import { mkdir, readFile, stat } from 'node:fs/promises';
import { execa } from 'execa';
import { buildContainer, containerInputs } from '../../src/build/containers/container-build.ts';
import type { ContentFile } from '../../src/build/compile.ts';
import { digestOf } from '../../src/core/digest.ts';
import { CurlewError } from '../../src/core/errors.ts';
import type { ContainerBuildStep } from '../../src/manifest/step.ts';
import { until } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree, writeTree, type Files, type Tree } from '../support/tree.ts';
import { openContainers, startEngine, type EngineBox, type OpenContainers } from './support/engine.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('dockerout', { timeoutMs: 120_000 });
const DOCKERFILE = 'addons/tool/template/Dockerfile.rhel9';

const opened = createOpened();
let box: Tree;
let engine: EngineBox;
let before: readonly string[];
let trees = 0;

/** A repository with an add-on, and a step of its Manifest. */
async function repository(files: Files, dockerfile: string = DOCKERFILE) {
  const root = box.at(`repository${(trees += 1)}`);
  await writeTree(root, { 'addons/tool/1.0/Manifest': '', ...files });
  const into = box.at(`into${trees}`);
  await mkdir(into);
  const step: ContainerBuildStep = { kind: 'container-build', destination: 'rhel-9', dockerfile, version: '1.6.33' };
  return { root, into, step, roots: { repository: root, addon: `${root}/addons/tool/1.0` } };
}

type Repository = Awaited<ReturnType<typeof repository>>;

async function build(
  { step, roots, into }: Repository,
  open: OpenContainers,
  { signal, limitMs = 60_000 }: { readonly signal: AbortSignal; readonly limitMs?: number },
): Promise<readonly ContentFile[]> {
  return buildContainer(step, open, { id: 'tool', roots, arch: 'amd64', into, limitMs, report: open.report, signal });
}

async function inputs(files: Files, signal: AbortSignal, change: Partial<ContainerBuildStep> = {}): Promise<string> {
  const { step, roots } = await repository(files);
  await using open = await openContainers(engine.env);
  return await containerInputs({ ...step, ...change }, open, { roots, arch: 'amd64', signal });
}

const why = cannotRun('dockerd', '/usr/bin/docker', 'busybox');
if (why !== undefined) test.skip('all of it', why);
else {
  test.before(async () => {
    box = opened.keep(await tree());
    engine = opened.keep(await startEngine(box.at('engine')));
    before = await engine.inventory();
  });
  test.after(opened.close);

  test('a Dockerfile as kURL has them gets the version, no context, and its /out is taken flat', async ({ signal }) => {
    const made = await repository({
      [DOCKERFILE]: `FROM base:1

# Which one.
ARG VERSION
ENV VERSION=\${VERSION}
RUN mkdir -p /packages/archives/repodata && \\
    echo "one-$VERSION" > /packages/archives/one-$VERSION.rpm
RUN echo data > /packages/archives/repodata/repomd.xml && \\
    # nothing
    echo '#!/bin/sh' > /packages/archives/run && busybox chmod 755 /packages/archives/run
VOLUME /packages
CMD echo copying; cp -r /packages/archives/* /out/
`,
    });
    await using open = await openContainers(engine.env);
    const files = await build(made, open, { signal });
    assert.equal(
      files.map(({ path, mode, size }) => [path, mode, size]),
      [
        ['rhel-9/one-1.6.33.rpm', 0o644, 11],
        ['rhel-9/repodata/repomd.xml', 0o644, 5],
        ['rhel-9/run', 0o755, 10],
      ],
    );
    const [first] = files;
    assert.equal(first?.content, { kind: 'path', path: `${made.into}/one-1.6.33.rpm` });
    assert.is(await readFile(`${made.into}/one-1.6.33.rpm`, 'utf8'), 'one-1.6.33\n');
    assert.is(first?.digest, digestOf('one-1.6.33\n'));
    const said = open.lines();
    assert.ok(
      said.includes(
        'step 4 of 7: RUN mkdir -p /packages/archives/repodata &&     echo "one-$VERSION" > /packages/archives/one-$VERSION.rpm',
      ),
      said.join('\n'),
    );
    assert.ok(said.includes('copying'));
    assert.equal(
      said.filter((line) => /LABEL|--->|intermediate/.test(line)),
      [],
    );
    await open[Symbol.asyncDispose]();
    assert.equal(await engine.inventory(), before);
  });

  test('a build argument of another name gets the value', async ({ signal }) => {
    const made = await repository({ [DOCKERFILE]: 'FROM base:1\nARG TOOL\nRUN echo $TOOL >/f\nCMD cp /f /out\n' });
    await using open = await openContainers(engine.env);
    await build({ ...made, step: { ...made.step, argument: 'TOOL' } }, open, { signal });
    assert.is(await readFile(`${made.into}/f`, 'utf8'), '1.6.33\n');
  });

  test('stages, copies from the context, and images to copy from', async ({ signal }) => {
    const made = await repository({
      [DOCKERFILE]: `ARG BASE=nothing:9
ARG VERSION=0
ARG BASE=base:\${VERSION:+1}
FROM $BASE AS first
COPY files/ /files/
ADD ["not here.txt", "/files/"]
FROM scratch AS empty
FROM first
COPY --from=base:1 /bin/busybox /tool
COPY --from=empty . /nothing/
CMD cp /files/* /tool /out/
`,
      'addons/tool/template/.dockerignore': '# built by hand\n**/*.bin\n!files/keep.bin\nbase\n',
      'addons/tool/template/files/a.txt': 'a\n',
      'addons/tool/template/files/keep.bin': 'keep\n',
      'addons/tool/template/files/left.bin': 'left\n',
      'addons/tool/template/base/x': 'x\n',
      'addons/tool/template/not here.txt': 'here\n',
    });
    await using open = await openContainers(engine.env);
    const files = await build(made, open, { signal });
    assert.equal(
      files.map(({ path }) => path),
      ['rhel-9/a.txt', 'rhel-9/keep.bin', 'rhel-9/not here.txt', 'rhel-9/tool'],
    );
    await open[Symbol.asyncDispose]();
    assert.equal(await engine.inventory(), before);
  });

  test('the path counts from the Manifest too, and a Dockerfile that is nowhere is named twice', async ({ signal }) => {
    const near = await repository(
      { 'addons/tool/1.0/box/Dockerfile': 'FROM base:1\nCMD echo a > /out/a' },
      'box/Dockerfile',
    );
    await using open = await openContainers(engine.env);
    assert.is((await build(near, open, { signal })).length, 1);
    const error = await assert.rejectsWith(
      build(await repository({}, 'no/Dockerfile'), open, { signal }),
      'NOT_FOUND',
      /neither \S+\/repository\d+\/no\/Dockerfile nor \S+\/addons\/tool\/1\.0\/no\/Dockerfile exists/,
    );
    assert.match(error.hint ?? '', /root of the repository/);
  });

  for (const [what, dockerfile, message] of [
    [
      'a step that fails is named with its last lines',
      'FROM base:1\nRUN true\nRUN true\nRUN true\nARG VERSION\nRUN true\nRUN echo trying $VERSION; echo broken; false\nRUN true\n',
      /step 7, RUN echo trying \$VERSION; .*: The command .* returned a non-zero code: 1\n {2}\| trying 1\.6\.33\n {2}\| broken$/,
    ],
    [
      'an instruction that does not exist is told with its line',
      'FROM base:1\nRUN true\nMAKE it\n',
      /dockerfile parse error line 3: unknown instruction: MAKE/i,
    ],
    ['a base without a value is told', 'ARG NAME\nFROM $NAME\nCMD true\n', /FROM uses a variable without a value/],
    [
      'an image to copy from that nobody has is told',
      'FROM base:1\nCOPY --from=127.0.0.1:9/none /a /b\n',
      /pull 127\.0\.0\.1:9\/none/,
    ],
    [
      'a program that fails is told with its last lines',
      'FROM base:1\nCMD echo cannot; exit 3\n',
      /the container's program ended with status 3\n {2}\| cannot$/,
    ],
    ['nothing in /out is told', 'FROM base:1\nCMD echo done\n', /the container wrote no files to \/out\n {2}\| done$/],
    [
      'a symbolic link out of /out is refused',
      'FROM base:1\nCMD touch /out/a; ln -s /etc/shadow /out/b\n',
      /"b" is a symbolic link to "\/etc\/shadow"/,
    ],
    ['a step that needs BuildKit is told', 'FROM base:1\nRUN --mount=type=cache,target=/x true\n', /--mount/],
  ] as const) {
    test(what, async ({ signal }) => {
      await using open = await openContainers(engine.env);
      const built = build(await repository({ [DOCKERFILE]: dockerfile }), open, { signal });
      const error = await built.catch((thrown) => thrown);
      assert.instance(error, CurlewError);
      assert.match(error.message, /^cannot (?:run dockerout rhel-9 \(\S+Dockerfile\.rhel9\)|pull )/);
      assert.match(error.message, message);
      if (/--mount/.test(dockerfile)) assert.match(error.hint ?? '', /classic builder/);
      assert.equal(await engine.inventory(), before);
    });
  }

  for (const [where, dockerfile] of [
    ['a step', 'FROM base:1\nRUN echo begun; trap "" TERM; sleep 1000\n'],
    ['the program', 'FROM base:1\nCMD echo begun; trap "" TERM; sleep 1000\n'],
  ] as const) {
    test(`${where} that never ends is ended at the time limit`, async ({ signal }) => {
      await using open = await openContainers(engine.env);
      await assert.rejectsWith(
        build(await repository({ [DOCKERFILE]: dockerfile }), open, { signal, limitMs: 2500 }),
        'CONTAINER_FAILED',
        /: still running after 2\.5 seconds\n {2}\| begun$/,
      );
      assert.equal(await engine.inventory(), before);
    });

    test(`cancelled during ${where}, nothing stays`, async () => {
      const stop = new AbortController();
      await using open = await openContainers(engine.env, (event) => {
        if (event.type === 'step-log' && event.text === 'begun') stop.abort(new CurlewError('CANCELLED', 'cancelled'));
      });
      const text = dockerfile.replace('RUN', 'RUN touch /first\nRUN').replace('CMD', 'RUN touch /first\nCMD');
      const made = await repository({ [DOCKERFILE]: text });
      await assert.rejectsWith(build(made, open, { signal: stop.signal }), 'CANCELLED');
      assert.equal(await engine.inventory(), before);
    });
  }

  test('cancelled while the context is sent, nothing stays', async () => {
    const stop = new AbortController();
    const made = await repository({
      [DOCKERFILE]: 'FROM base:1\nCOPY . /x\nRUN sleep 1000\n',
      'addons/tool/template/large': Buffer.alloc(200 << 20),
    });
    await using open = await openContainers(engine.env);
    const building = build(made, open, { signal: stop.signal });
    const name = (await engine.docker('info', '--format', '{{.DockerRootDir}}')).trim();
    const sent = async (): Promise<boolean> => {
      const { stdout } = await execa('du', ['-sm', `${name}/tmp`], { reject: false });
      return Number.parseInt(stdout, 10) > 5;
    };
    await until(sent);
    stop.abort(new CurlewError('CANCELLED', 'cancelled'));
    await assert.rejectsWith(building, 'CANCELLED');
    assert.equal(await engine.inventory(), before);
    assert.is(await stat(`${made.into}/x`).catch(() => undefined), undefined);
  });

  test('steps that a base image brings along go too, also when one of them fails', async ({ signal }) => {
    for (const last of ['RUN true', 'ONBUILD RUN false']) {
      const context = await tree({
        Dockerfile: `FROM base:1\nONBUILD RUN touch /tmp/a\nONBUILD RUN touch /tmp/b\n${last}\n`,
      });
      await engine.docker('build', '--quiet', '--tag', 'bringing:1', context.path);
      const there = await engine.inventory();
      await using open = await openContainers(engine.env);
      const made = await repository({ [DOCKERFILE]: 'FROM bringing:1\nCMD touch /out/a\n' });
      const built = await build(made, open, { signal }).then(
        () => 'built',
        (error) => error.code,
      );
      assert.is(built, last === 'RUN true' ? 'built' : 'CONTAINER_FAILED');
      assert.equal(await engine.inventory(), there);
      await engine.docker('rmi', '--force', 'bringing:1');
      await context[Symbol.asyncDispose]();
    }
    assert.equal(await engine.inventory(), before);
  });

  test('the inputs change with all that decides the result, and with nothing else', async ({ signal }) => {
    const copying: Files = { [DOCKERFILE]: 'FROM base:1\nCOPY a /a\nCMD true\n', 'addons/tool/template/a': 'a' };
    const ignoring = { ...copying, 'addons/tool/template/.dockerignore': 'b\n' };
    const plain: Files = { [DOCKERFILE]: 'FROM base:1\nCMD true\n' };
    const first = await inputs(plain, signal);
    assert.is(await inputs({ ...plain, 'addons/tool/template/other': 'x' }, signal), first, 'no context');
    assert.is.not(await inputs(plain, signal, { version: '1.6.34' }), first);
    assert.is.not(await inputs(plain, signal, { argument: 'TOOL' }), first);
    assert.is.not(await inputs({ [DOCKERFILE]: 'FROM base:1\nCMD false\n' }, signal), first);
    const second = await inputs(copying, signal);
    assert.is.not(await inputs({ ...copying, 'addons/tool/template/a': 'b' }, signal), second);
    assert.is.not(await inputs({ ...copying, 'addons/tool/template/b': 'b' }, signal), second);
    const third = await inputs(ignoring, signal);
    assert.is(await inputs({ ...ignoring, 'addons/tool/template/b': 'b' }, signal), third);
    await engine.docker('tag', 'base:1', 'base:kept');
    const context = await tree({ Dockerfile: 'FROM base:kept\nLABEL new=1\n' });
    await engine.docker('build', '--quiet', '--tag', 'base:1', context.path);
    assert.is.not(await inputs(plain, signal), first, 'another base image');
    await engine.docker('tag', 'base:kept', 'base:1');
    assert.is(await inputs(plain, signal), first);
    await context[Symbol.asyncDispose]();
  });

  test('without an engine a build says how to start one', async ({ signal }) => {
    await using open = await openContainers({ DOCKER_HOST: `unix://${box.at('none.sock')}` });
    const made = await repository({ [DOCKERFILE]: 'FROM base:1\n' });
    const error = await assert.rejectsWith(build(made, open, { signal }), 'FETCH_FAILED', /engine does not respond/);
    assert.match(error.hint ?? '', /start it/);
  });
}

test.run();
