"""Names that `make_entities.py` and `make_spans.py` draw from: real first and last names, places, organisations.

Persons are put together from a first and a last name, so nobody in particular is meant. Which split a name is for is
decided by a checksum (`dealt`), so it is never in both, whatever kinds of entity it stands for.
"""

import zlib


def listed(text: str) -> list[str]:
    return [" ".join(entry.split()) for entry in text.split(",")]


SALT = 83  # chosen so that each list has names in both splits


def dealt(names: list[str], split: str) -> list[str]:
    """The names of a split: about one in seven validates, the others (and all of `FREQUENT`) train."""

    def validates(name: str) -> bool:
        return name not in FREQUENT and zlib.crc32(f"{name.lower()} {SALT}".encode()) % 7 == 0

    return [name for name in names if validates(name) == (split == "validation")]


FREQUENT = set(
    listed("""U.S., United States, Britain, Germany, France, London, New York, Washington, Russia, China, Japan,
    England, EU, U.N., United Nations, European Union, Reuters, NATO,
    American, British, German, French, Russian, European""")
)

FIRST = {
    "she": listed("""Maria, Anna, Elena, Sofia, Laura, Julia, Emma, Sarah, Rachel, Hannah, Alice, Clara, Martha, Ingrid,
        Helga, Greta, Astrid, Birgit, Katrin, Petra, Claudia, Monica, Isabel, Carmen, Pilar, Lucia, Teresa, Beatriz,
        Francesca, Chiara, Giulia, Paola, Sylvie, Claire, Camille, Odile, Nathalie, Margot, Olga, Irina, Natalia,
        Svetlana, Tatiana, Ludmila, Agnieszka, Ewa, Zofia, Jana, Lenka, Ivana, Milena, Fatima, Leila, Amina, Nadia,
        Yasmin, Aisha, Priya, Sunita, Lakshmi, Meera, Anjali, Mei, Ling, Yuki, Keiko, Akiko, Naomi, Haruka, Grace, Ruth,
        Wanjiru, Ngozi, Thandiwe, Karen, Susan, Linda, Patricia, Barbara, Nancy, Dorothy, Sandra, Carol, Janet, Diane,
        Kelly, Amy, Heather, Megan, Lindsay, Fiona, Moira, Siobhan, Aoife, Eleni, Ioana, Zsuzsa, Marta, Annika, Kirsten,
        Jessica, Amanda, Stephanie, Nicole, Melissa, Rebecca, Christine, Kathleen, Deborah, Gabriela, Adriana"""),
    "he": listed("""Peter, John, Paul, David, Michael, Thomas, Robert, William, James, George, Richard, Mark, Steven,
        Andrew, Brian, Kevin, Gary, Alan, Colin, Graham, Nigel, Trevor, Stuart, Malcolm, Ian, Neil, Craig, Darren, Lee,
        Scott, Todd, Brad, Chad, Jeff, Greg, Doug, Rick, Randy, Larry, Jerry, Frank, Joe, Sam, Max, Hans, Klaus,
        Jürgen, Dieter, Wolfgang, Stefan, Matthias, Lothar, Uwe, Pierre, Jean, Michel, Laurent, Didier, Olivier,
        Philippe, Luc, Marco, Paolo, Giovanni, Luigi, Roberto, Fabio, Antonio, Carlos, José, Juan, Luis, Miguel, Javier,
        Pedro, Rafael, Diego, Fernando, Joaquín, Ricardo, João, Rui, Ivan, Sergei, Dmitri, Vladimir, Alexei, Igor,
        Yuri, Boris, Oleg, Andrei, Mikhail, Viktor, Piotr, Tomasz, Jan, Pavel, Jiri, Milan, Goran, Zoran, Dragan, Ante,
        Lars, Sven, Erik, Olaf, Nils, Magnus, Jesper, Mikael, Jari, Mika, Pekka, Ahmed, Mohammed, Ali, Hassan, Omar,
        Khalid, Ibrahim, Yusuf, Karim, Tariq, Ravi, Sanjay, Anil, Rahul, Sachin, Imran, Wasim, Salim, Wei, Jun, Ming,
        Kenji, Takashi, Hiroshi, Akira, Kwame, Kofi, Sipho, Moses, Daniel, Joseph, Haile, Gheorghe, Nikos, Dimitris,
        Istvan, Laszlo, Ferenc, Mehmet, Mustafa, Emre, Patrick, Liam, Declan, Rory, Gareth, Rhys, Owen, Simon, Martin,
        Philip, Stephen, Anthony, Kenneth, Ronald, Donald, Edward, Jason, Eric, Walter, Roger, Harold, Keith"""),
}  # fmt: skip
FIRST["any"] = FIRST["she"] + FIRST["he"]

LAST = listed(
    """Smith, Jones, Brown, Taylor, Wilson, Evans, Walker, Wright, Robinson, Thompson, White, Hughes, Edwards, Green,
    Hall, Wood, Harris, Martin, Jackson, Clarke, Clark, Turner, Hill, Cooper, Ward, Moore, Morris, Watson, Parker,
    Morgan, Baker, Young, Allen, Mitchell, Anderson, Phillips, Lee, Bell, Carter, Shaw, Bennett, Cook, Murphy,
    Kelly, Ryan, Byrne, Walsh, Doyle, Gallagher, McCarthy, O'Neill, O'Brien, O'Connor, MacDonald, McGregor,
    Campbell, Stewart, Fraser, Murray, Sinclair, Ferguson, Washington, Lincoln, Houston, Dallas, Sydney, Chester,
    Lancaster, Hamilton, Preston, York, Kent, Paris, London, Wellington, Nelson, Austin, Jordan, Israel, Ireland,
    Holland, France, Bush, Ford, Müller, Schmidt, Schneider, Fischer, Weber, Becker, Hoffmann, Koch, Bauer, Richter,
    Klein, Wolf, Schröder, Neumann, Zimmermann, Krüger, Hartmann, Lange, Vogel, Keller, Winter, Berger, Huber,
    Gruber, Steiner, Moser, Dubois, Moreau, Laurent, Lefebvre, Leroy, Roux, Fournier, Girard, Bonnet, Mercier,
    Blanc, Rousseau, Fontaine, Chevalier, Gauthier, Rossi, Russo, Ferrari, Bianchi, Romano, Colombo, Ricci, Marino,
    Greco, Conti, Gallo, Costa, Mancini, Lombardi, Moretti, Barbieri, García, Fernández, González, López, Martínez,
    Sánchez, Pérez, Gómez, Ruiz, Díaz, Moreno, Álvarez, Romero, Navarro, Torres, Domínguez, Vázquez, Ramos, Castro,
    Ortega, Delgado, Silva, Santos, Ferreira, Pereira, Oliveira, Rodrigues, Almeida, Carvalho, Ribeiro, de Souza,
    van Dijk, de Vries, Janssen, Bakker, Visser, de Jong, van den Berg, Peeters, Claes, Maes, Ivanov, Petrov,
    Sidorov, Smirnov, Kuznetsov, Popov, Sokolov, Lebedev, Kozlov, Novikov, Morozov, Volkov, Pavlov, Orlov, Ivanova,
    Petrova, Shevchenko, Kovalenko, Bondarenko, Melnyk, Nowak, Kowalski, Wisniewski, Lewandowski, Zielinski, Mazur,
    Novák, Svoboda, Dvorak, Novotny, Horvat, Kovacs, Nagy, Szabo, Toth, Varga, Popescu, Ionescu, Dumitrescu,
    Petrovic, Jovanovic, Nikolic, Markovic, Milosevic, Babic, Papadopoulos, Nikolaidis, Georgiou, Yilmaz, Kaya,
    Demir, Çelik, Andersson, Johansson, Karlsson, Nilsson, Eriksson, Lindqvist, Bergström, Hansen, Olsen, Larsen,
    Pedersen, Nielsen, Jensen, Christensen, Korhonen, Virtanen, Mäkinen, Nieminen, Hussein, al-Hassan, al-Masri,
    Haddad, Nasser, Mansour, Rahman, Khan, Malik, Akhtar, Ahmed, Singh, Sharma, Gupta, Patel, Kumar, Verma, Rao,
    Reddy, Nair, Fernando, Perera, de Silva, Jayawardene, Chen, Wang, Zhang, Liu, Yang, Huang, Zhao, Zhou, Wu, Kim,
    Park, Choi, Nguyen, Tran, Pham, Tanaka, Suzuki, Sato, Watanabe, Yamamoto, Nakamura, Kobayashi, Okafor, Adeyemi,
    Mensah, Nkosi, Dlamini, Mbeki, Kamau, Kiptoo, Cheruiyot, Tesfaye, Bekele, Diallo, Traoré, Ndiaye, Barnes, Ross,
    Henderson, Coleman, Jenkins, Perry, Powell, Long, Patterson, Flores, Butler, Simmons, Foster, Gonzales, Bryant,
    Alexander, Russell, Griffin, Hayes, Myers, Graham, Sullivan, Wallace, Woods, Cole, West, Fisher, Stone, Hunt,
    Black, Knight, Day, Rose, May, Rice, Price, Marsh, Brooks, Fields, Rivers, Banks, Church, Page, Field, Little,
    Short"""
)

CITIES = listed(
    """London, New York, Washington, Paris, Berlin, Moscow, Tokyo, Beijing, Rome, Madrid, Vienna, Brussels, Geneva,
    Zurich, Amsterdam, Frankfurt, Munich, Hamburg, Cologne, Stuttgart, Bonn, Milan, Turin, Naples, Florence, Venice,
    Bologna, Genoa, Barcelona, Valencia, Seville, Bilbao, Zaragoza, Lisbon, Porto, Athens, Istanbul, Ankara, Izmir,
    Warsaw, Krakow, Gdansk, Prague, Brno, Budapest, Bucharest, Sofia, Belgrade, Zagreb, Sarajevo, Ljubljana, Skopje,
    Tirana, Kiev, Minsk, Riga, Vilnius, Tallinn, Helsinki, Stockholm, Gothenburg, Malmo, Oslo, Bergen, Copenhagen,
    Aarhus, Dublin, Cork, Belfast, Edinburgh, Glasgow, Aberdeen, Dundee, Cardiff, Swansea, Manchester, Liverpool,
    Leeds, Sheffield, Birmingham, Bristol, Newcastle, Southampton, Portsmouth, Nottingham, Leicester, Coventry,
    Derby, Norwich, Sunderland, Blackburn, Bolton, Oxford, Cambridge, Brighton, Lyon, Marseille, Bordeaux, Nantes,
    Lille, Strasbourg, Toulouse, Rennes, Nice, Antwerp, Ghent, Rotterdam, Eindhoven, Utrecht, The Hague, Basel,
    Lausanne, Salzburg, Graz, Linz, Dresden, Leipzig, Hanover, Bremen, Dortmund, Nuremberg, Jerusalem, Tel Aviv,
    Gaza, Hebron, Amman, Damascus, Beirut, Baghdad, Basra, Tehran, Kabul, Kandahar, Islamabad, Karachi, Lahore,
    Peshawar, New Delhi, Bombay, Calcutta, Madras, Bangalore, Colombo, Jaffna, Dhaka, Kathmandu, Rangoon, Bangkok,
    Hanoi, Ho Chi Minh City, Phnom Penh, Manila, Jakarta, Kuala Lumpur, Singapore, Hong Kong, Taipei, Shanghai,
    Guangzhou, Shenzhen, Seoul, Pusan, Osaka, Nagoya, Kyoto, Sapporo, Sydney, Melbourne, Brisbane, Perth, Adelaide,
    Canberra, Auckland, Wellington, Christchurch, Cairo, Alexandria, Tripoli, Tunis, Algiers, Casablanca, Rabat,
    Khartoum, Addis Ababa, Nairobi, Mombasa, Kampala, Kigali, Kinshasa, Lagos, Abuja, Accra, Dakar, Abidjan, Lusaka,
    Harare, Maputo, Johannesburg, Cape Town, Durban, Pretoria, Luanda, Mexico City, Guadalajara, Tijuana, Havana,
    Kingston, Guatemala City, Managua, San Salvador, Panama City, Bogota, Medellin, Caracas, Quito, Lima, La Paz,
    Santiago, Buenos Aires, Rosario, Montevideo, Asuncion, Rio de Janeiro, Sao Paulo, Brasilia, Porto Alegre,
    Toronto, Montreal, Ottawa, Vancouver, Calgary, Edmonton, Winnipeg, Quebec, Chicago, Los Angeles, San Francisco,
    San Diego, San Jose, Oakland, Sacramento, Seattle, Portland, Denver, Phoenix, Las Vegas, Salt Lake City, Dallas,
    Houston, Austin, San Antonio, New Orleans, Miami, Orlando, Tampa, Atlanta, Charlotte, Nashville, Memphis, St.
    Louis, Kansas City, Minneapolis, Milwaukee, Detroit, Cleveland, Cincinnati, Columbus, Indianapolis, Pittsburgh,
    Philadelphia, Baltimore, Boston, Buffalo, Hartford, Newark, Jersey City, Little Rock, Grozny, Kazan,
    Vladivostok, St. Petersburg, Tbilisi, Baku, Yerevan, Almaty, Tashkent, Bishkek, Mostar, Banja Luka, Tuzla,
    Split, Dubrovnik, Nicosia, Valletta, Reykjavik, Luxembourg, Monte Carlo, Monaco, Doha, Dubai, Abu Dhabi, Riyadh,
    Jeddah, Kuwait City, Muscat, Sanaa, Aden, Mogadishu, Monrovia, Freetown, Bujumbura, Chelsea, Kent, Lancaster,
    Chester, Lincoln, Hamilton, Preston, York, Reading, Bath, Essen, Durham, Essex, Leuven, Bruges, Siena, Pisa,
    Padua, Verona, Parma, Bergamo, Cagliari, Tenerife, Vigo, Santander, Granada, Malaga, Metz, Nancy, Cannes,
    Auxerre, Lens, Bastia, Le Havre"""
)

COUNTRIES = listed(
    """U.S., United States, Britain, Germany, France, Russia, China, Japan, England, Scotland, Wales, Northern Ireland,
    Ireland, Italy, Spain, Portugal, Greece, Turkey, Cyprus, Malta, Austria, Switzerland, Belgium, Netherlands,
    Luxembourg, Denmark, Sweden, Norway, Finland, Iceland, Poland, Czech Republic, Slovakia, Hungary, Romania,
    Bulgaria, Yugoslavia, Serbia, Croatia, Slovenia, Bosnia, Macedonia, Albania, Ukraine, Belarus, Moldova,
    Lithuania, Latvia, Estonia, Georgia, Armenia, Azerbaijan, Kazakhstan, Uzbekistan, Tajikistan, Kyrgyzstan,
    Turkmenistan, Iran, Iraq, Syria, Lebanon, Israel, Jordan, Egypt, Libya, Tunisia, Algeria, Morocco, Sudan,
    Ethiopia, Eritrea, Somalia, Kenya, Uganda, Tanzania, Rwanda, Burundi, Zaire, Congo, Angola, Zambia, Zimbabwe,
    Mozambique, Malawi, Namibia, Botswana, South Africa, Nigeria, Ghana, Ivory Coast, Liberia, Sierra Leone,
    Senegal, Mali, Cameroon, Gabon, Chad, Saudi Arabia, Kuwait, Bahrain, Qatar, United Arab Emirates, Oman, Yemen,
    Afghanistan, Pakistan, India, Bangladesh, Sri Lanka, Nepal, Burma, Thailand, Cambodia, Laos, Vietnam, Malaysia,
    Indonesia, Philippines, Taiwan, South Korea, North Korea, Mongolia, Australia, New Zealand, Papua New Guinea,
    Fiji, Canada, Mexico, Guatemala, Honduras, El Salvador, Nicaragua, Costa Rica, Panama, Cuba, Jamaica, Haiti,
    Dominican Republic, Bahamas, Trinidad, West Indies, Barbados, Colombia, Venezuela, Ecuador, Peru, Bolivia,
    Chile, Argentina, Uruguay, Paraguay, Brazil"""
)

REGIONS = listed(
    """California, Texas, Florida, Ohio, Michigan, Illinois, Iowa, Kansas, Nebraska, Oregon, Virginia, North Carolina,
    South Carolina, Tennessee, Kentucky, Alabama, Mississippi, Louisiana, Arkansas, Oklahoma, New Mexico, Arizona,
    Nevada, Utah, Colorado, Wyoming, Montana, Minnesota, Wisconsin, Indiana, Pennsylvania, New Jersey, Connecticut,
    Massachusetts, Vermont, Maine, Alaska, Hawaii, Ontario, Alberta, British Columbia, Nova Scotia, Bavaria, Saxony,
    Hesse, Tuscany, Sicily, Sardinia, Lombardy, Corsica, Brittany, Normandy, Catalonia, Andalusia, Galicia, Crete,
    Chechnya, Siberia, Crimea, Dagestan, Transylvania, Kosovo, Montenegro, Vojvodina, Kurdistan, Anatolia, Kashmir,
    Punjab, Assam, Bihar, Kerala, Gujarat, Tamil Nadu, Sindh, Tibet, Xinjiang, Sichuan, Hunan, Guangdong, Okinawa,
    Hokkaido, Mindanao, Sumatra, Java, Bali, East Timor, Queensland, Tasmania, New South Wales, Victoria, Natal,
    Transvaal, KwaZulu-Natal, Katanga, Darfur, Patagonia, Chiapas, Yucatan, Yorkshire, Cornwall, Devon, Surrey,
    Sussex, Norfolk, Gloucestershire, Derbyshire, Warwickshire, Ulster, Lapland, Jutland, West Bank, Gaza Strip,
    Golan Heights, Bosnia, Middle East, Europe, Asia, Africa, Latin America, Central America, Southeast Asia,
    Scandinavia, Balkans, Caucasus, Persian Gulf, Caribbean, Central Asia, East Africa, Western Europe, Eastern
    Europe, Mediterranean, Baltic"""
)

RIVERS = listed(
    """Danube, Rhine, Volga, Thames, Seine, Loire, Rhone, Elbe, Oder, Vistula, Dnieper, Don, Po, Tiber, Ebro, Tagus,
    Nile, Congo River, Niger, Zambezi, Limpopo, Orange River, Euphrates, Tigris, Jordan River, Indus, Ganges,
    Brahmaputra, Mekong, Irrawaddy, Yangtze, Yellow River, Amur, Lena, Ob, Murray River, Darling River, Mississippi
    River, Missouri River, Ohio River, Hudson River, Potomac, Rio Grande, Colorado River, Amazon, Orinoco, Parana"""
)
SEAS = listed(
    """Black Sea, Red Sea, North Sea, Baltic Sea, Adriatic, Aegean Sea, Caspian Sea, South China Sea, Atlantic,
    Pacific, Indian Ocean, Gulf of Mexico, English Channel, Bay of Bengal, Arabian Sea, Tasman Sea, Irish Sea,
    Ionian Sea, Barents Sea, Coral Sea, Sea of Japan, Bering Sea, Bay of Biscay, Gulf of Finland"""
)
WATERS = [
    *RIVERS,
    *SEAS,
    *listed("""Lake Geneva, Lake Victoria, Lake Constance, Lake Michigan, Lake Superior, Lake Baikal,
    Suez Canal, Panama Canal, Strait of Hormuz, Kiel Canal, Lake Titicaca, Lake Chad"""),
]

GROUNDS = listed(
    """Wembley, Old Trafford, Lord's, Headingley, Trent Bridge, Edgbaston, Flushing Meadows, Silverstone, Monza,
    Maracana, San Siro, Hampden Park, Roland Garros, Fenway Park, Yankee Stadium, Wimbledon, Anfield, Highbury,
    Villa Park, Twickenham, Cardiff Arms Park, Madison Square Garden, Brands Hatch, St Andrews, Eden Park, Epsom,
    Ascot"""
)
SPOTS = listed(
    """Wall Street, Red Square, Downing Street, Heathrow, Gatwick, Kennedy Airport, Orly, Ben Gurion, Central Park,
    Capitol Hill, Manhattan, Brooklyn, Queens, Harlem, Hollywood, Silicon Valley, Tiananmen Square, Mount Everest,
    Alps, Pyrenees, Andes, Himalayas, Rocky Mountains, Mont Blanc, Mount Fuji, Kilimanjaro, Sahara, Gobi, Kremlin,
    Vatican, Eiffel Tower, Brandenburg Gate, Champs Elysees, Trafalgar Square, Soho, Camp David, Alcatraz, Cape
    Canaveral, Saint-Denis, Hampstead, Notting Hill, Sunset Boulevard, Fifth Avenue, Broadway, Yellowstone, Grand
    Canyon, Bondi Beach"""
)

COMPANIES = listed(
    """Siemens, Volkswagen, Daimler-Benz, Deutsche Bank, Bayer, BASF, Hoechst, Lufthansa, Allianz, Renault, Peugeot,
    Michelin, Air France, Alcatel, Danone, Carrefour, Total, Fiat, Olivetti, Pirelli, Telecom Italia, Alitalia,
    Philips, Royal Dutch Shell, Unilever, Heineken, KLM, Nestle, Novartis, Swissair, Ericsson, Volvo, Saab,
    Electrolux, Nokia, Carlsberg, Statoil, British Airways, British Telecom, Barclays, Lloyds, Marks and Spencer,
    Tesco, Sainsbury, Rolls-Royce, Glaxo Wellcome, Rio Tinto, Reuters, General Motors, Ford, Chrysler, Boeing,
    Lockheed Martin, General Electric, Westinghouse, IBM, Intel, Microsoft, Apple Computer, Hewlett-Packard, Compaq,
    Dell, Motorola, AT&T, MCI, Sprint, Exxon, Mobil, Chevron, Texaco, Coca-Cola, PepsiCo, Procter & Gamble, Kodak,
    Xerox, Walt Disney, Time Warner, Merrill Lynch, Goldman Sachs, J.P. Morgan, Citicorp, Chase Manhattan, American
    Express, Wal-Mart, Sears, Kmart, McDonald's, Nike, Pfizer, Merck, Johnson & Johnson, Delta Air Lines, United
    Airlines, American Airlines, Toyota, Honda, Nissan, Mazda, Mitsubishi, Sony, Matsushita, Toshiba, Hitachi,
    Fujitsu, NEC, Canon, Nomura, Nippon Steel, Hyundai, Samsung, Daewoo, Kia, Cathay Pacific, Singapore Airlines,
    Qantas, BHP, Westpac, News Corp, Gazprom, Lukoil, Aeroflot, Skoda, LOT, Petrobras, Pemex, Telmex, Cemex, Anglo
    American, De Beers, Tata, Infosys, Air India, Petronas"""
)
COMPANY_ENDS = listed("Inc, Corp, Co, Ltd, Plc, AG, SA, NV, Group, Holdings, Industries, Bank, Partners, Securities")
COMPANY_STEMS = listed(
    """Northfield, Meridian, Halcyon, Brightwater, Ridgeway, Oakmont, Silverline, Ashford, Westbrook, Ironbridge,
    Kestrel, Lakeshore, Granite, Beacon, Harbour, Summit, Keystone, Redwood, Falcon, Orion, Polaris, Sterling,
    Crestview, Highland, Pinnacle, Clearwater, Stonebridge, Maple, Cobalt, Juniper, Atlas, Pioneer, Evergreen,
    Lighthouse, Cascade, Tideway, Fairmont, Glenwood, Marlowe, Thornton, Whitmore, Castlegate, Eastman, Hartwell,
    Lockwood, Penrose, Quantum, Vector, Zenith, Apex, Delphi, Argo, Vesta, Helios, Solaris, Novara, Tecnomar,
    Interfin, Agroprom, Metalex"""
)
COMPANY_FIELDS = listed(
    """Steel, Foods, Airlines, Motors, Energy, Oil, Gas, Mining, Pharmaceuticals, Electronics, Telecom, Insurance,
    Chemicals, Textiles, Shipping, Software, Systems, Technologies, Petroleum, Resources, Media, Capital, Brewing,
    Paper, Cement, Gold, Semiconductor, Financial, Trust, Savings"""
)

BODIES = listed(
    """U.N., United Nations, EU, European Union, NATO, OPEC, OECD, IMF, World Bank, WTO, UNICEF, UNESCO, WHO, World
    Health Organisation, Red Cross, Amnesty International, Greenpeace, European Commission, European Parliament,
    European Central Bank, Bundesbank, Bank of England, Bank of Japan, Bank of France, Federal Reserve, Congress,
    Senate, House of Representatives, House of Commons, House of Lords, Bundestag, Duma, Knesset, Pentagon, White
    House, State Department, Treasury, Foreign Office, Foreign Ministry, Defence Ministry, Finance Ministry,
    Interior Ministry, Health Ministry, Agriculture Department, Labor Department, Commerce Department, Supreme
    Court, High Court, Constitutional Court, World Court, Interpol, FBI, CIA, Scotland Yard, NASA, European Space
    Agency, Arab League, African Union, Commonwealth, OSCE, Council of Europe, UEFA, FIFA, IOC, International
    Olympic Committee, NCAA, NHL, NBA, NFL, PGA, International Monetary Fund, Security Council, General Assembly,
    Stock Exchange, New York Stock Exchange, London Metal Exchange, Chicago Board of Trade, Securities and Exchange
    Commission, Food and Drug Administration, Customs Service, Coast Guard, National Weather Service, Royal Navy,
    Red Army, Parliament, Politburo, Vatican Radio, Port Authority, Civil Aviation Authority, Football Association,
    Lawn Tennis Association, Chamber of Commerce, Central Bank, National Bank, Statistics Office, Meteorological
    Office, Save the Children, Oxfam"""
)
PARTIES = listed(
    """Labour Party, Conservative Party, Liberal Democrats, Christian Democrats, Social Democrats, Democratic Party,
    Republican Party, Socialist Party, Communist Party, Green Party, Radical Party, People's Party, National Party,
    Congress Party, Liberal Party, Freedom Party, Peasants Party, Progressive Party, Workers' Party, Reform Party,
    Centre Party, Agrarian Party, National Front, Democratic Alliance, Motherland Party, Welfare Party, Likud,
    Fatah, Sinn Fein, Fine Gael, Fianna Fail, Solidarity"""
)
SCHOOLS = listed(
    """Harvard University, Yale University, Stanford University, Princeton University, Columbia University, Cornell
    University, Duke University, Oxford University, Cambridge University, University of London, University of
    Chicago, University of Michigan, University of Texas, Massachusetts Institute of Technology, Sorbonne,
    Heidelberg University, Humboldt University, Uppsala University, Leiden University, Charles University,
    University of Bologna, University of Tokyo, Peking University, University of Cape Town, University of Melbourne,
    McGill University, Trinity College, Imperial College, London School of Economics, Max Planck Institute, Pasteur
    Institute, Karolinska Institute, Royal Society, Mayo Clinic, Smithsonian Institution, National Gallery, Louvre,
    Brookings Institution, Johns Hopkins University, Georgetown University"""
)
PAPERS = listed(
    """New York Times, Washington Post, Wall Street Journal, Financial Times, Guardian, Independent, Daily Telegraph,
    The Times, Daily Mirror, Sun, Le Monde, Le Figaro, Liberation, Die Welt, Bild, Der Spiegel, El Pais, El Mundo,
    La Repubblica, Corriere della Sera, Pravda, Izvestia, Xinhua, Itar-Tass, Interfax, Tass, Kyodo, Asahi Shimbun,
    Yomiuri Shimbun, Times of India, Hindu, Dawn, Straits Times, South China Morning Post, Al-Ahram, Haaretz,
    Jerusalem Post, Globe and Mail, Toronto Star, Sydney Morning Herald, Los Angeles Times, Boston Globe, Chicago
    Tribune, USA Today, Newsweek, Time, Economist, BBC, CNN, NBC, CBS, ABC, NHK, ARD, Radio Moscow, Associated
    Press, Agence France-Presse, Reuters, Bloomberg, L'Equipe, Gazzetta dello Sport, Izvestiya, Hurriyet, Milliyet,
    Rzeczpospolita"""
)

CLUBS = listed(
    """Arsenal, Chelsea, Everton, Manchester United, Manchester City, Liverpool, Leeds, Leeds United, Newcastle United,
    Newcastle, Aston Villa, Tottenham, West Ham, Blackburn, Middlesbrough, Nottingham Forest, Sheffield Wednesday,
    Sheffield United, Southampton, Sunderland, Leicester, Derby, Coventry, Wimbledon, Bolton, Ipswich, Norwich,
    Queens Park Rangers, Crystal Palace, Portsmouth, Birmingham, West Bromwich Albion, Wolverhampton, Barnsley,
    Stoke, Millwall, Watford, Swindon, Tranmere, Huddersfield, Celtic, Rangers, Hearts, Hibernian, Aberdeen,
    Kilmarnock, Dunfermline, Motherwell, Dundee United, Raith, Partick, Stirling, Ajax, Feyenoord, PSV Eindhoven,
    Utrecht, Heerenveen, Vitesse, Sparta Rotterdam, Groningen, Anderlecht, Club Brugge, Standard Liege, Ghent,
    Lierse, Bayern Munich, Borussia Dortmund, Bayer Leverkusen, Werder Bremen, Hamburg, Schalke, VfB Stuttgart,
    Karlsruhe, Cologne, Freiburg, 1860 Munich, Hansa Rostock, Borussia Moenchengladbach, Paris Saint-Germain,
    Monaco, Marseille, Auxerre, Lens, Nantes, Bordeaux, Lyon, Lille, Metz, Strasbourg, Bastia, Rennes, Cannes, Le
    Havre, Montpellier, Guingamp, Juventus, AC Milan, Inter Milan, Milan, Lazio, Roma, Napoli, Parma, Fiorentina,
    Sampdoria, Torino, Atalanta, Udinese, Cagliari, Bologna, Vicenza, Perugia, Piacenza, Verona, Real Madrid,
    Barcelona, Atletico Madrid, Valencia, Deportivo Coruna, Sevilla, Real Betis, Athletic Bilbao, Real Sociedad,
    Espanyol, Zaragoza, Tenerife, Valladolid, Oviedo, Racing Santander, Celta Vigo, Compostela, Benfica, Porto,
    Sporting, Boavista, Olympiakos, Panathinaikos, AEK Athens, Galatasaray, Fenerbahce, Besiktas, Trabzonspor,
    Spartak Moscow, CSKA Moscow, Dynamo Kiev, Lokomotiv Moscow, Rotor Volgograd, Alania Vladikavkaz, Legia Warsaw,
    Widzew Lodz, Slavia Prague, Sparta Prague, Ferencvaros, Steaua Bucharest, Red Star Belgrade, Partizan Belgrade,
    Hajduk Split, Croatia Zagreb, Levski Sofia, Rapid Vienna, Austria Vienna, Sturm Graz, Grasshopper, FC Zurich,
    Neuchatel Xamax, Sion, Brondby, Rosenborg, IFK Gothenburg, Malmo, HJK Helsinki, Boca Juniors, River Plate,
    Independiente, Racing Club, San Lorenzo, Flamengo, Palmeiras, Santos, Gremio, Cruzeiro, Penarol, Nacional, Colo
    Colo, Boca, Maccabi Tel Aviv, Hapoel Haifa, Kashima Antlers, Verdy Kawasaki"""
)
US_TEAMS = listed(
    """Boston, Toronto, Baltimore, New York, Detroit, Cleveland, Chicago, Minnesota, Milwaukee, Kansas City, Texas,
    Seattle, Oakland, California, Atlanta, Florida, Philadelphia, Montreal, Houston, St. Louis, Cincinnati,
    Pittsburgh, San Diego, Los Angeles, Colorado, San Francisco, Dallas, Washington, Green Bay, Tampa Bay, Arizona,
    Denver, Miami, Buffalo, New England, Indianapolis, Orlando, Portland, Phoenix, Sacramento, Utah, New Jersey,
    Charlotte, Golden State, Vancouver, Calgary, Edmonton, Ottawa, Hartford, NY Islanders, NY Rangers, Anaheim, San
    Jose, Jacksonville, Carolina"""
)
NICKNAMES = listed(
    """Red Sox, Blue Jays, Orioles, Yankees, Tigers, Indians, White Sox, Twins, Brewers, Royals, Mariners, Athletics,
    Angels, Braves, Marlins, Phillies, Expos, Astros, Cardinals, Reds, Pirates, Padres, Dodgers, Rockies, Giants,
    Cubs, Mets, Cowboys, Packers, Vikings, Bears, Broncos, Raiders, Chiefs, Dolphins, Bills, Patriots,
    Jets, Colts, Magic, Blazers, Suns, Kings, Jazz, Nets, Hornets, Warriors, Lakers, Bulls, Knicks, Celtics, Pacers,
    Pistons, Hawks, Rockets, Spurs, Canucks, Flames, Oilers, Senators, Whalers, Sharks, Penguins, Bruins, Sabres,
    Rangers, Avalanche"""
)
CRICKET = listed(
    """Surrey, Kent, Essex, Sussex, Hampshire, Yorkshire, Lancashire, Durham, Derbyshire, Warwickshire, Worcestershire,
    Gloucestershire, Somerset, Middlesex, Northamptonshire, Leicestershire, Nottinghamshire, Glamorgan, Queensland,
    Tasmania, Victoria, Western Province, Transvaal, Natal, Karnataka, Baroda, Canterbury, Otago, Northern Districts"""
)
SPORT_TEAMS = listed(
    """Ferrari, Williams, McLaren, Benetton, Jordan, Tyrrell, Minardi, Yamaha, Suzuki, Ducati, Aprilia, Telekom, Mapei,
    Rabobank, Once, Banesto, Festina, Kelme, Lotto, Carrera, Toyota, Mitsubishi, Subaru, Ford"""
)

NATIONS = listed(
    """American, British, German, French, Russian, European, English, Scottish, Welsh, Irish, Italian, Spanish,
    Portuguese, Greek, Turkish, Cypriot, Maltese, Austrian, Swiss, Belgian, Dutch, Danish, Swedish, Norwegian,
    Finnish, Icelandic, Polish, Czech, Slovak, Hungarian, Romanian, Bulgarian, Yugoslav, Serbian, Croatian,
    Slovenian, Bosnian, Macedonian, Albanian, Ukrainian, Belarussian, Moldovan, Lithuanian, Latvian, Estonian,
    Georgian, Armenian, Azeri, Kazakh, Uzbek, Tajik, Iranian, Iraqi, Syrian, Lebanese, Israeli, Palestinian,
    Jordanian, Egyptian, Libyan, Tunisian, Algerian, Moroccan, Sudanese, Ethiopian, Somali, Kenyan, Ugandan,
    Tanzanian, Rwandan, Burundian, Zairean, Angolan, Zambian, Zimbabwean, South African, Nigerian, Ghanaian,
    Liberian, Senegalese, Cameroonian, Saudi, Kuwaiti, Qatari, Yemeni, Afghan, Pakistani, Indian, Bangladeshi, Sri
    Lankan, Nepalese, Burmese, Thai, Cambodian, Vietnamese, Malaysian, Indonesian, Filipino, Taiwanese, South
    Korean, North Korean, Japanese, Chinese, Mongolian, Australian, Canadian, Mexican, Guatemalan, Honduran,
    Nicaraguan, Panamanian, Cuban, Jamaican, Haitian, Colombian, Venezuelan, Ecuadorean, Peruvian, Bolivian,
    Chilean, Argentine, Uruguayan, Paraguayan, Brazilian, Arab, Asian, African, Latin American, Kurdish, Chechen,
    Basque, Catalan, Bavarian, Scandinavian, Flemish, Tibetan, Tamil, Western, Soviet, Bosnian Serb, Anglo-French,
    Franco-German, Israeli-Palestinian, Russian-American, non-Japanese, Anglo-Irish"""
)
PEOPLES = listed(
    """Americans, Britons, Germans, Russians, Europeans, Italians, Spaniards, Greeks, Turks, Austrians, Belgians,
    Dutchman, Danes, Swede, Swedes, Norwegians, Finns, Poles, Czechs, Slovaks, Hungarians, Romanians, Serbs, Croats,
    Moslems, Albanians, Ukrainians, Georgians, Armenians, Iranians, Iraqis, Syrians, Israelis, Palestinians,
    Jordanians, Egyptians, Libyans, Algerians, Moroccans, Hutus, Tutsis, Kurds, Chechens, Basques, Arabs, Jews,
    Christians, Catholics, Protestants, Muslims, Hindus, Sikhs, Buddhists, Tamils, Afghans, Pakistanis, Indians,
    Sinhalese, Thais, Vietnamese, Koreans, Japanese, Chinese, Australians, Canadians, Mexicans, Cubans, Haitians,
    Colombians, Brazilians, Argentines, Chileans, Zulus, Nigerians, Kenyans, Zaireans, Republicans, Democrats,
    Tories, Communists, Frenchman, Englishman, Spaniard, Briton, American, Swiss, Belgian, Italian, Croat, Serb,
    Dane, Finn, Pole, Turk, Zimbabweans"""
)
LANGUAGES = listed(
    """English, German, French, Spanish, Italian, Portuguese, Russian, Polish, Czech, Hungarian, Swahili, Zulu, Arabic,
    Hebrew, Turkish, Farsi, Urdu, Hindi, Bengali, Tamil, Mandarin, Cantonese, Japanese, Korean, Tagalog, Latin,
    Gaelic, Welsh, Catalan, Basque, Quechua, Finnish, Estonian, Latvian, Afrikaans, Hausa, Yoruba, Amharic"""
)
CUPS = listed(
    """World Cup, European Cup, UEFA Cup, FA Cup, Champions League, Cup Winners' Cup, Premier League, Serie A,
    Bundesliga, Davis Cup, Fed Cup, Ryder Cup, Asian Games, African Nations Cup, Copa America, Commonwealth Games,
    Olympics, Olympic Games, Winter Olympics, European Championship, Grand Prix, Tour de France, Giro d'Italia, Tour
    of Spain, Super Bowl, World Series, Stanley Cup, U.S. Open, French Open, Australian Open, British Open, Masters,
    Italian Open, German Open, Canadian Open, Swiss Open, Ashes, Sheffield Shield, Super League, Five Nations,
    Tri-Nations, Libertadores Cup, National League, American League, Scottish Cup, Italian Cup, Coca-Cola Cup,
    League Cup, World Championships, Pan Am Games, Goodwill Games, Kentucky Derby, Breeders' Cup, Wightman Cup, Uber
    Cup, Thomas Cup, Asia Cup, Gold Cup, Monte Carlo Rally, Safari Rally, Boston Marathon, Stella Artois
    Championship, Skate America, Heineken Cup"""
)
WARS = listed(
    """World War Two, World War One, Cold War, Gulf War, Vietnam War, Korean War, Second World War, Civil
    War, Six Day War, Boer War, Prague Spring, Great Depression, Russian Revolution, Renaissance, Crimean War"""
)
AWARDS = listed(
    """Nobel Prize, Nobel Peace Prize, Oscar, Booker Prize, Pulitzer Prize, Grammy, Golden Bear, Golden Globe, Emmy,
    Prix Goncourt, Tony Award, Victoria Cross, Purple Heart, Turner Prize, Palme d'Or, Golden Lion, Whitbread Prize"""
)
HOLIDAYS = listed(
    """Christmas, Easter, Ramadan, Bastille Day, Thanksgiving, Yom Kippur, Diwali, New Year, Passover, Good Friday,
    Independence Day, Labour Day, Whit Monday, Boxing Day"""
)
PLANES = listed(
    """Boeing 747, Boeing 737, Airbus A320, MiG-29, F-16, Concorde, Cessna, Black Hawk, DC-10, Tupolev-154, Boeing 767,
    Fokker 100, Antonov-24, Airbus A300, Ilyushin-76, Mirage 2000, Hercules C-130, Lynx"""
)
GOODS = listed(
    """Windows 95, Macintosh, Pentium, Golf, Beetle, Jaguar XJ6, Walkman, Prozac, Escort, Corolla, Netscape Navigator,
    Internet, World Wide Web, Zantac, Aspirin, Game Boy, PlayStation, Mondeo, Unix, Java, Betaseron, Post-it, Tetris"""
)
WORKS = listed(
    """Bible, Koran, Talmud, Mona Lisa, Hamlet, Macbeth, Carmen, La Traviata, War and Peace, Don Quixote, Star Wars,
    Othello, King Lear, Faust, Tosca, Aida, The Magic Flute, Casablanca, Gone With the Wind, Madame Butterfly, The
    Odyssey, Anna Karenina, Swan Lake, Guernica, Sunflowers, Cats, Evita, Les Miserables, Jurassic Park, Star Trek,
    Sesame Street"""
)
TREATIES = listed(
    """Maastricht Treaty, Warsaw Pact, Geneva Convention, Kyoto Protocol, Magna Carta, Treaty of Rome, Helsinki Final
    Act, Montreal Protocol, Rome Statute"""
)
INDICES = listed(
    """Nikkei, Dow Jones Industrial Average, FTSE 100, DAX, CAC-40, Hang Seng, S&P 500, All Ordinaries, Ibex, Bovespa,
    Mibtel, Nikkei 225, Straits Times Industrials, Nasdaq Composite, Sensex, SET, Topix, Dow Jones, Merval, Bel-20"""
)
CRAFT = listed(
    """Apollo 11, Mir, Voyager, Hubble, Soyuz, Galileo, Ariane 5, Discovery, Atlantis, Endeavour, Cassini, Giotto,
    Pathfinder, Columbia, Titanic, Mayflower, Sputnik, Ulysses"""
)
FAITHS = listed(
    """Moslem, Muslim, Islamic, Catholic, Protestant, Jewish, Christian, Orthodox, Hindu, Sikh, Buddhist, Roman
    Catholic, Anglican, Lutheran, Shi'ite, Sunni, Islamist, Marxist, Zionist, Maoist, Communist,
    Socialist"""
)
CAMPS = listed(
    """Democrat, Republican, Conservative, Labour, Communist, Socialist, Christian Democrat, Social Democrat, Liberal,
    Democratic, Tory, Liberal Democrat, Gaullist, Peronist, Green, Thatcherite, Kemalist"""
)
DIVISIONS = [
    f"{first} {second}"
    for first in listed("Eastern, Western, Central, Atlantic, Pacific, Northern, Southern, National, American, Midwest")
    for second in ("Division", "Conference")
]
CIRCUITS = listed("NHL, NBA, NFL, NCAA, PGA, ATP, WTA, IAAF, FIBA, LPGA, CBA, AFC, NFC, WBC, WBA, FIFA, UEFA, IOC")
