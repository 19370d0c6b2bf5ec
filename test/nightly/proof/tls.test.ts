/** testssl.sh looks for weaknesses of TLS in `curlew serve`. */
import { execa } from 'execa';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:tls';
import { startDaemon } from '../../components/support/daemon.ts';
import { assertSays } from '../../components/support/proof.ts';
import { MAIN } from '../../support/compiled.ts';
import { missing, unless } from '../../support/needs.ts';
import { freePort } from '../../support/ports.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';
import { tree } from '../../support/tree.ts';

const test = suite('nightly/proof/tls', { timeoutMs: 1_800_000 });

interface Finding {
  readonly id: string;
  readonly severity: string;
  readonly finding: string;
}

/** Not the certificate and its chain: they are of this test. */
const CHECKS = ['--protocols', '--std', '--pfs', '--server-preference', '--vulnerable', '--grease'];
const SEVERITIES = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'];

async function shakesHands(port: number, ca: string): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port, ca });
  try {
    await once(socket, 'secureConnect');
    return true;
  } finally {
    socket.destroy();
  }
}

unless(missing('testssl', 'openssl'), test)('testssl.sh finds no weakness in the TLS of serve', async () => {
  const { key, cert, ca } = await makeCertificate();
  await using box = await tree({ 'store/x': '', 'site.key': key, 'site.crt': cert });
  const port = await freePort();
  const host = `127.0.0.1:${port}`;
  const words = ['--store', box.at('store'), '--listen', host];
  await using _server = await startDaemon({
    command: process.execPath,
    args: [MAIN, 'serve', ...words, '--tls-cert', box.at('site.crt'), '--tls-key', box.at('site.key')],
    logFile: box.at('serve.log'),
    ready: async () => shakesHands(port, ca),
  });
  const quiet = ['--quiet', '--color', '0', '--warnings', 'off', '--nodns', 'none'];
  const { stdout } = await execa(
    'testssl',
    [...quiet, ...CHECKS, '--jsonfile', box.at('found.json'), `https://${host}/`],
    {
      cwd: box.path,
      stdin: 'ignore',
      reject: false,
    },
  );
  const found = JSON.parse(await readFile(box.at('found.json'), 'utf8')) as readonly Finding[];
  const weak = found.filter(({ severity }) => SEVERITIES.includes(severity));
  const right = found.filter(({ severity }) => severity === 'OK');
  const explained = weak.map(({ id, finding }) => `${id}: ${finding}`).join('\n');
  assertSays('testssl', `${right.length} OK, ${weak.length} weak`, `${explained}\n${stdout}`);
});

test.run();
