/** reprotest builds a package twice, and changes between the builds what must not matter. */
import { execa } from 'execa';
import { MAIN } from '../../support/compiled.ts';
import { cleanEnvironment } from '../../support/curlew.ts';
import { specOf } from '../../support/node-bundles.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { unless } from '../../support/needs.ts';
import { cannotRun } from '../support/programs.ts';
import { assertSays } from '../support/proof.ts';

const test = suite('components/proof/reprotest', { timeoutMs: 180_000 });

const VARIATIONS = [
  'aslr',
  'build_path',
  'domain_host',
  'environment',
  'exec_path',
  'home',
  'kernel',
  'locales',
  'num_cpus',
  'time',
  'timezone',
  'umask',
];

unless(cannotRun('reprotest', 'faketime', 'unshare'), test)(
  'a package and a bundle are built twice the same',
  async () => {
    await using box = await tree({
      'source/addons/hello/1.0.0/Manifest': 'asset motd motd.txt\n',
      'source/addons/hello/1.0.0/motd.txt': 'Hello.\n',
      'source/addons/hello/1.0.0/install.sh': 'hello() { :; }\n',
      'source/spec.yaml': specOf([{ name: 'hello', version: '1.0.0' }]),
    });
    const curlew = `"${process.execPath}" "${MAIN}"`;
    const build = [
      `${curlew} build hello --out out`,
      `${curlew} publish hello --to store --release v1`,
      `${curlew} bundle spec.yaml --from store -o out/bundle.tar.gz`,
    ].join(' && ');
    const words = ['--source-root', box.at('source'), `--variations=${VARIATIONS.join(',')}`, '--min-cpus=2'];
    const { all, exitCode } = await execa('reprotest', [...words, build, 'out/*', '--', 'null'], {
      cwd: box.path,
      env: cleanEnvironment({ cwd: box.path, env: { TMPDIR: box.path } }),
      extendEnv: false,
      stdin: 'ignore',
      all: true,
      reject: false,
    });
    const files = [...all.matchAll(/^[0-9a-f]{64} {2}\S+$/gm)].length;
    const said = /^Reproduction (?:successful|failed)$/m.exec(all)?.[0];
    assertSays('reprotest', `${said}, ${files} files, ${VARIATIONS.length} variations`, `${exitCode}\n${all}`);
  },
);

test.run();
