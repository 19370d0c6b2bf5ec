/** The authority for users of a real API server: certificates by the signer of kube-controller-manager, and bootstrap tokens. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeAuthority } from '../../../src/formats/signing/authority.ts';
import { freePort } from '../../support/ports.ts';
import { startDaemon, type Daemon } from './daemon.ts';
import { oracle } from './programs.ts';

/** What signs. */
export const MANAGER: string = oracle('../kubernetes-1.36/kube-controller-manager');

export interface ClientAuthority {
  /** For an API server that accepts it. */
  readonly options: readonly string[];
  /** Starts kube-controller-manager with its signer alone; certificates live for 30 days by default. */
  readonly startSigner: (kubeconfig: string, ...options: readonly string[]) => Promise<Daemon>;
}

/** Its files are below `folder`; `within` is what starts its signer in another network. */
export async function makeClientAuthority(folder: string, within: readonly string[] = []): Promise<ClientAuthority> {
  const { certificate, key } = makeAuthority('clients', { days: 1 });
  const [crt, keyFile] = [join(folder, 'clients.crt'), join(folder, 'clients.key')];
  await mkdir(folder, { recursive: true });
  await writeFile(crt, certificate);
  await writeFile(keyFile, key.reveal(), { mode: 0o600 });
  return {
    options: ['--client-ca-file', crt, '--enable-bootstrap-token-auth'],
    startSigner: async (kubeconfig, ...options) => {
      const port = String(await freePort());
      const log = join(folder, `manager-${port}.log`);
      const [command, ...before] = [...within, MANAGER];
      const args = [
        before,
        ['--kubeconfig', kubeconfig, '--controllers', 'certificatesigningrequest-signing-controller'],
        ['--leader-elect=false', '--bind-address', '127.0.0.1', '--secure-port', port],
        ['--cert-dir', folder, '--cluster-signing-cert-file', crt, '--cluster-signing-key-file', keyFile],
        options,
      ].flat();
      const ready = async (): Promise<boolean> => (await readFile(log, 'utf8')).includes('Caches are synced');
      return startDaemon({ command, args, logFile: log, ready });
    },
  };
}
