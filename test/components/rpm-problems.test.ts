/** rpm packages that cannot be had: each reason is told in a few lines, and nothing stays. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { scriptVariables } from '../../src/build/host-packages/script.ts';
import type { ErrorCode } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { run, shell } from './support/programs.ts';
import {
  cannotRunRpm,
  copyRepository,
  repositoryOf,
  SCRIPTS,
  startRpmLab,
  take,
  type RpmLab,
} from './support/rpm-lab.ts';
import { makeKey, makeMetadata, makeRpms, serveFolder } from './support/rpm-repository.ts';

const test = suite('rpm packages that cannot be had', { timeoutMs: 180_000 });

/** Processes that know of a folder, by arguments or environment. */
async function processesOf(folder: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const id of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    for (const part of ['cmdline', 'environ']) {
      const text = await readFile(`/proc/${id}/${part}`, 'latin1').catch(() => '');
      if (text.includes(folder)) found.push(text);
    }
  }
  return found;
}

/** What the script itself says of a list of repositories; empty when all is well. */
async function problemOf(lab: RpmLab, name: string, list: string): Promise<string> {
  const [out, state, file] = [lab.box.at(`${name}-out`), lab.box.at(`${name}-state`), lab.box.at(`${name}.list`)];
  await Promise.all([mkdir(out), mkdir(state), writeFile(file, list)]);
  const variables = scriptVariables({ os: 'rhel-8', arch: 'amd64', task: 'collect' }, 'host');
  const places = { CURLEW_OUT: out, CURLEW_STATE: state, CURLEW_REPOSITORIES: file, CURLEW_KNOWN: '' };
  const env = { PATH: '/usr/bin:/bin', HOME: state, ...variables, ...places };
  await execa('bash', [join(SCRIPTS, 'host-packages/rpm.sh'), 'helper'], { env, extendEnv: false, reject: false });
  return readFile(join(state, 'result/problem'), 'utf8').catch(() => '');
}

const reason = cannotRunRpm();
if (reason === undefined) {
  let lab: RpmLab;
  test.before(async () => {
    lab = await startRpmLab();
  });
  test.after(async () => lab.close());

  for (const [title, names, os, message, hint] of [
    [
      'an unknown name, with near ones',
      ['app', 'libary'],
      'rhel-8',
      /no such package: libary$/,
      /libary, did you mean library/,
    ],
    [
      'unknown names all at once',
      ['apq', 'zzz'],
      'rhel-9',
      /no such package: apq, zzz$/,
      /instead of apq, did you mean app/,
    ],
    ['an option for a name', ['--installroot=/', 'app'], 'rhel-8', /no such package: --installroot=\/$/, /Manifest/],
    ['a path for a name', ['/etc/passwd'], 'rhel-8', /no such package: \/etc\/passwd$/, /Manifest/],
    [
      'two that exclude each other',
      ['left', 'right'],
      'rhel-8',
      /left-1.0-1.noarch conflicts with right provided by/,
      /remove one of them/,
    ],
    [
      'a requirement that nothing meets',
      ['broken'],
      'rhel-8',
      /nothing provides nothing-has-this >= 3 needed by/,
      /remove one of them/,
    ],
    [
      'two that exclude each other, without resolution',
      ['left', 'right'],
      'rhel-9',
      /left-1.0-1.noarch conflicts with right provided by/,
      /remove one of them/,
    ],
    [
      'a requirement that nothing meets, without resolution',
      ['broken'],
      'amazon-2023',
      /nothing provides nothing-has-this >= 3 needed by/,
      /remove one of them/,
    ],
    [
      'one of a stream that is not active',
      ['hidden'],
      'rhel-8',
      /hidden: belongs to module streams/,
      /remove one of them/,
    ],
    ['one for another machine', ['arm-only'], 'rhel-8', /arm-only: not for x86_64/, /remove one of them/],
  ] as const) {
    test(`${title}: told in a few lines`, async () => {
      const folder = lab.box.at(`none-${title.replaceAll(/\W+/g, '-')}`);
      const error = await assert.rejectsWith(take(lab, names, { os, folder }), 'PACKAGES_UNRESOLVED', message);
      assert.match(error.hint ?? '', hint);
      assert.ok(error.message.split('\n').length < 8, error.message);
      assert.not.match(error.message, /Traceback/);
      assert.equal(await readdir(folder), []);
    });
  }

  test('a repository that is down is named, without the secret in its address', async () => {
    await using gone = await serveFolder(lab.folder);
    const url = `http://user:secret@127.0.0.1:${gone.port}/?token=secret`;
    await gone[Symbol.asyncDispose]();
    const repositories = [repositoryOf(lab), { id: 'gone', url }];
    const error = await assert.rejectsWith(
      take(lab, ['app'], { repositories }),
      'FETCH_FAILED',
      /127\.0\.0\.1:\d+\/: /,
    );
    assert.not.match(`${error.message}${error.hint ?? ''}`, /secret/);
    assert.match(error.message, /a repository cannot be read/);
  });

  /** The repository with something wrong in it, and what that is called. */
  const WRONG: readonly {
    readonly title: string;
    readonly spoil: (folder: string) => Promise<unknown>;
    readonly code: ErrorCode;
    readonly message: RegExp;
  }[] = [
    {
      title: 'metadata that are not what repomd.xml says',
      spoil: async (folder) => shell('for f in "$1"/repodata/*-primary.xml.gz; do echo >>"$f"; done', folder),
      code: 'FETCH_FAILED',
      message: /checksum doesn't match/,
    },
    {
      title: 'a package that is no longer there',
      spoil: async (folder) => rm(join(folder, 'noarch/helper-1.0-1.noarch.rpm')),
      code: 'DIGEST_MISMATCH',
      message: /404.*helper-1\.0-1/,
    },
    {
      title: 'a package with other bytes',
      spoil: async (folder) => {
        const file = join(folder, 'noarch/helper-1.0-1.noarch.rpm');
        const bytes = await readFile(file);
        await writeFile(file, bytes.fill(0, bytes.length - 8));
      },
      code: 'DIGEST_MISMATCH',
      message: /helper-1\.0-1.*checksum/,
    },
    {
      title: 'a package without a signature',
      spoil: async (folder) => {
        await run('rpmsign', ['--delsign', join(folder, 'noarch/helper-1.0-1.noarch.rpm')]);
        await makeMetadata(folder);
      },
      code: 'SIGNATURE_INVALID',
      message: /helper-1\.0-1\.noarch\.rpm is not signed/,
    },
    {
      title: 'a package that someone else signed',
      spoil: async (folder) => {
        const other = await makeKey(lab.box.path, 'other');
        await rm(join(folder, 'noarch/helper-1.0-1.noarch.rpm'));
        await makeRpms(folder, [{ name: 'helper', files: ['/usr/bin/helper'] }]);
        await shell('mkdir "$1.one" && mv "$1"/noarch/helper-*.rpm "$1.one"', folder);
        await other.signPackages(`${folder}.one`);
        await shell('mv "$1.one"/*.rpm "$1/noarch"', folder);
        await makeMetadata(folder);
      },
      code: 'SIGNATURE_INVALID',
      message: /[Pp]ublic key for helper-1\.0-1\.noarch\.rpm is not installed/,
    },
  ];

  for (const [index, { title, spoil, code, message }] of WRONG.entries()) {
    test(`${title}: refused`, async () => {
      const folder = lab.box.at(`wrong-${index}`);
      await copyRepository(lab, folder);
      await spoil(folder);
      await using server = await serveFolder(folder);
      const repositories = [{ ...repositoryOf(lab), url: `${server.url}/` }];
      const error = await assert.rejectsWith(take(lab, ['helper'], { repositories }), code, message);
      assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${server.port}/`));
      assert.ok(error.message.split('\n').length < 8, error.message);
    });
  }

  test('metadata must be signed where the list of repositories asks for it', async () => {
    const folder = lab.box.at('signed');
    await copyRepository(lab, folder);
    await using server = await serveFolder(folder);
    const list = `[signed]\nname=signed\nbaseurl=${server.url}/\ngpgcheck=1\nrepo_gpgcheck=1\ngpgkey=${lab.key.url}\n`;
    assert.match(await problemOf(lab, 'unsigned', list), /^signature\t\S+\/\t.*(?:GPG|signature)/m);
    await lab.key.signMetadata(folder);
    assert.is(await problemOf(lab, 'signed', list), '');
    await shell('echo >>"$1/repodata/repomd.xml"', folder);
    assert.match(await problemOf(lab, 'forged', list), /^signature\t\S+\/\t.*(?:GPG|signature)/m);
    // dnf asks gpg, which starts an agent.
    for (const name of ['signed', 'forged']) assert.equal(await processesOf(lab.box.at(`${name}-state`)), []);
  });

  test('a key that is not there is told with its address', async () => {
    const key = `${lab.server.url}/no-key`;
    const repositories = [{ ...repositoryOf(lab), key }];
    await assert.rejectsWith(take(lab, ['helper'], { repositories }), 'SIGNATURE_INVALID', /its key .*\/no-key/);
  });

  for (const part of ['out', 'scratch'] as const) {
    test(`a full disk below ${part === 'out' ? 'the output' : 'the private state'}: said, and enough elsewhere`, async () => {
      const small = lab.box.at(`small-${part}`);
      await shell('mkdir "$1" && mount -t tmpfs -o size=64k tmpfs "$1"', small);
      try {
        const where = part === 'out' ? { folder: join(small, 'x') } : { scratch: join(small, 'x') };
        const error = await assert.rejectsWith(take(lab, ['app'], where), 'NO_SPACE', /no space left/);
        assert.match(error.hint ?? '', /free some space/);
      } finally {
        await shell('umount "$1"', small);
      }
    });
  }

  for (const [moment, pattern] of [
    ['metadata', /repomd\.xml$/],
    ['packages', /app-.*\.rpm$/],
  ] as const) {
    test(`cancelled while ${moment} come: no process is left`, async () => {
      const controller = new AbortController();
      const scratch = lab.box.at(`cancelled-${moment}`);
      lab.faults.push(({ path }, regular) => {
        if (!pattern.test(path)) return undefined;
        controller.abort(new Error('cancelled by the test'));
        return { ...regular, sending: 'never' };
      });
      try {
        let said = '';
        await take(lab, ['app'], { scratch, signal: controller.signal }).catch(
          (error: unknown) => (said = String(error)),
        );
        assert.match(said, /cancelled by the test/);
        assert.equal(await processesOf(scratch), []);
      } finally {
        lab.faults.length = 0;
      }
    });
  }
} else {
  test.skip('all of it', reason);
}

test.run();
