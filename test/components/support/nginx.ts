/** Debian's nginx on loopback, with files of a folder. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../support/ports.ts';
import { startDaemon, type Daemon } from './daemon.ts';

export interface Nginx extends Daemon {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
}

/** Serves `root`; `more` are further directives of its server. Everything that it writes lies in `folder`. */
export async function startNginx(folder: string, root: string, more: readonly string[] = []): Promise<Nginx> {
  await mkdir(folder, { recursive: true });
  const host = `127.0.0.1:${await freePort()}`;
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  const config = `daemon off; master_process off; user root; pid ${join(folder, 'pid')}; error_log stderr;
events { worker_connections 256; }
http {
  access_log ${join(folder, 'access.log')};
  default_type application/octet-stream;
  limit_conn_zone $server_name zone=all:1m;
  ${temporary.join('\n  ')}
  server { listen ${host}; root ${root}; ${more.join(' ')} }
}
`;
  const path = join(folder, 'nginx.conf');
  await writeFile(path, config);
  const url = `http://${host}`;
  const daemon = await startDaemon({
    command: '/usr/sbin/nginx',
    args: ['-c', path, '-p', folder, '-e', join(folder, 'error.log')],
    logFile: join(folder, 'nginx.log'),
    ready: async () => (await fetch(url)).status > 0,
  });
  return { ...daemon, url };
}
