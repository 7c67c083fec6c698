import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.Principal;
import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import java.time.Duration;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedKeyManager;

/**
 * Makes the requests on standard input, {@code METHOD URL [BODY]} a line, with a key store and a trust store as Arrowhead's systems
 * have them: KEY_STORE TRUST_STORE PASSWORD_FILE [insist]. Prints {@code STATUS PROTOCOL BODY} a line, or {@code refused} and why.
 * Java shows a server only certificates of authorities that the server has named; with {@code insist} it shows its own whatever
 * the server says.
 */
public final class Client {
    private static final Duration TIME_MAX = Duration.ofSeconds(10);

    private Client() {}

    public static void main(String[] arguments) throws Exception {
        char[] password = Files.readString(Path.of(arguments[2])).strip().toCharArray();
        HttpClient client = HttpClient.newBuilder()
                .sslContext(context(arguments[0], arguments[1], password, arguments.length > 3))
                .connectTimeout(TIME_MAX)
                .build();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            System.out.println(answer(client, line.split(" ", 3)));
        }
    }

    private static SSLContext context(String keyStore, String trustStore, char[] password, boolean insists) throws Exception {
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(KeyStore.getInstance(Path.of(keyStore).toFile(), password), password);
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(KeyStore.getInstance(Path.of(trustStore).toFile(), password));
        SSLContext context = SSLContext.getInstance("TLS");
        X509ExtendedKeyManager shown = (X509ExtendedKeyManager) keys.getKeyManagers()[0];
        context.init(new KeyManager[] {insists ? new Insistent(shown) : shown}, trust.getTrustManagers(), null);
        return context;
    }

    private static String answer(HttpClient client, String[] words) throws InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(words[1])).timeout(TIME_MAX);
        if (words.length > 2) {
            request.header("Content-Type", "application/json").method(words[0], BodyPublishers.ofString(words[2]));
        } else {
            request.method(words[0], BodyPublishers.noBody());
        }
        try {
            HttpResponse<String> response = client.send(request.build(), BodyHandlers.ofString());
            String protocol = response.sslSession().orElseThrow().getProtocol();
            return response.statusCode() + " " + protocol + " " + response.body();
        } catch (IOException error) {
            return "refused " + error;
        }
    }

    /** Forgets which authorities the server has named. */
    private static final class Insistent extends X509ExtendedKeyManager {
        private final X509ExtendedKeyManager keys;

        Insistent(X509ExtendedKeyManager keys) {
            this.keys = keys;
        }

        @Override
        public String chooseEngineClientAlias(String[] kinds, Principal[] authorities, SSLEngine engine) {
            return keys.chooseEngineClientAlias(kinds, null, engine);
        }

        @Override
        public String chooseClientAlias(String[] kinds, Principal[] authorities, Socket socket) {
            return keys.chooseClientAlias(kinds, null, socket);
        }

        @Override
        public String[] getClientAliases(String kind, Principal[] authorities) {
            return keys.getClientAliases(kind, null);
        }

        @Override
        public String chooseServerAlias(String kind, Principal[] authorities, Socket socket) {
            return keys.chooseServerAlias(kind, authorities, socket);
        }

        @Override
        public String[] getServerAliases(String kind, Principal[] authorities) {
            return keys.getServerAliases(kind, authorities);
        }

        @Override
        public X509Certificate[] getCertificateChain(String alias) {
            return keys.getCertificateChain(alias);
        }

        @Override
        public PrivateKey getPrivateKey(String alias) {
            return keys.getPrivateKey(alias);
        }
    }
}
